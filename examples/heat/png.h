/* A PNG writer without dependencies: stored (uncompressed) deflate blocks, which every
 * viewer reads. Formats: PNG (ISO/IEC 15948), zlib (RFC 1950), deflate (RFC 1951). */
#ifndef HEAT_PNG_H
#define HEAT_PNG_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t png_crc(uint32_t crc, const unsigned char *data, size_t length) {
    for (size_t i = 0; i < length; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0xEDB88320u & -(crc & 1));
    }
    return crc;
}

static void png_be32(unsigned char *at, uint32_t value) {
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

static int png_chunk(FILE *file, const char *type, const unsigned char *data, size_t length) {
    unsigned char head[8], tail[4];
    png_be32(head, (uint32_t)length);
    memcpy(head + 4, type, 4);
    png_be32(tail, ~png_crc(png_crc(~0u, head + 4, 4), data, length));
    return fwrite(head, 1, 8, file) == 8 && fwrite(data, 1, length, file) == length && fwrite(tail, 1, 4, file) == 4;
}

/* The zlib stream of `raw`: header, blocks of at most 65535 bytes, Adler-32. */
static size_t png_store(unsigned char *out, const unsigned char *raw, size_t length) {
    size_t at = 0, done = 0;
    uint32_t a = 1, b = 0;
    out[at++] = 0x78;
    out[at++] = 0x01;
    do {
        size_t part = length - done > 65535 ? 65535 : length - done;
        out[at++] = done + part == length;
        out[at++] = (unsigned char)part;
        out[at++] = (unsigned char)(part >> 8);
        out[at++] = (unsigned char)~part;
        out[at++] = (unsigned char)(~part >> 8);
        memcpy(out + at, raw + done, part);
        at += part;
        done += part;
    } while (done < length);
    for (size_t i = 0; i < length; i++) {
        a = (a + raw[i]) % 65521;
        b = (b + a) % 65521;
    }
    png_be32(out + at, b << 16 | a);
    return at + 4;
}

/* Writes `rgb` (height rows of width pixels of 3 bytes); returns 1 when all went well. */
static int png_write(const char *path, const unsigned char *rgb, int width, int height) {
    size_t row = 3 * (size_t)width, raw_length = (row + 1) * (size_t)height;
    unsigned char *raw = malloc(raw_length), *packed = malloc(raw_length + raw_length / 65535 * 5 + 16), header[13];
    FILE *file = fopen(path, "wb");
    int good = raw && packed && file;
    if (good) {
        for (int y = 0; y < height; y++) {
            raw[(row + 1) * (size_t)y] = 0; /* no filter */
            memcpy(raw + (row + 1) * (size_t)y + 1, rgb + row * (size_t)y, row);
        }
        png_be32(header, (uint32_t)width);
        png_be32(header + 4, (uint32_t)height);
        memcpy(header + 8, "\x08\x02\0\0\0", 5); /* 8 bits, RGB */
        size_t length = png_store(packed, raw, raw_length);
        good = fwrite("\x89PNG\r\n\x1a\n", 1, 8, file) == 8 && png_chunk(file, "IHDR", header, 13) &&
               png_chunk(file, "IDAT", packed, length) && png_chunk(file, "IEND", header, 0);
    }
    if (file && fclose(file) != 0)
        good = 0;
    free(raw);
    free(packed);
    return good;
}

#endif
