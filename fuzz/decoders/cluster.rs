//! Files of clusters, which people write: read, or refused with the name of the file.

use sim::Cluster;

/// The input as such a file.
pub fn decode(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match Cluster::parse("file", &text) {
        Ok(cluster) => assert!(cluster.hosts >= 1 && cluster.cores >= 1),
        Err(why) => assert!(why.starts_with("file:"), "{why}"),
    }
}
