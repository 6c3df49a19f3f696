/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Grapheme clusters: what a reader sees as one character, and how many columns a terminal gives it. See format.h. Pure.
 *
 * The C library knows code points one by one: it counts a family of three people, joined into one picture, as six columns.
 * GLib has no clusters either, so this file has the rules of UAX #29 that change a width:
 *
 *      GB9, GB9a    marks, joiners, variation selectors and modifiers of a picture belong to the preceding character
 *      GB11         a picture, marks, U+200D and a second picture are one picture
 *      GB12, GB13   two regional indicators are a flag
 *
 * Widths are those of the first character (UAX #11, as the C library has it) and of its spacing marks. A picture has two
 * columns if U+FE0F, a modifier or a second picture follows (UTS #51); so has a keycap, as 1 U+FE0F U+20E3.
 */
#include <wchar.h>

#include "tools/terminal/format.h"

#define JOINER 0x200d
#define EMOJI_PRESENTATION 0xfe0f

/* Extended_Pictographic of emoji-data.txt, Unicode 14. */
static const struct {
        gunichar first, last;
} pictures[] = {
        { 0xa9, 0xa9 }, { 0xae, 0xae }, { 0x203c, 0x203c }, { 0x2049, 0x2049 }, { 0x2122, 0x2122 }, { 0x2139, 0x2139 },
        { 0x2194, 0x2199 }, { 0x21a9, 0x21aa }, { 0x231a, 0x231b }, { 0x2328, 0x2328 }, { 0x2388, 0x2388 },
        { 0x23cf, 0x23cf }, { 0x23e9, 0x23f3 }, { 0x23f8, 0x23fa }, { 0x24c2, 0x24c2 }, { 0x25aa, 0x25ab },
        { 0x25b6, 0x25b6 }, { 0x25c0, 0x25c0 }, { 0x25fb, 0x25fe }, { 0x2600, 0x2605 }, { 0x2607, 0x2612 },
        { 0x2614, 0x2685 }, { 0x2690, 0x2705 }, { 0x2708, 0x2712 }, { 0x2714, 0x2714 }, { 0x2716, 0x2716 },
        { 0x271d, 0x271d }, { 0x2721, 0x2721 }, { 0x2728, 0x2728 }, { 0x2733, 0x2734 }, { 0x2744, 0x2744 },
        { 0x2747, 0x2747 }, { 0x274c, 0x274c }, { 0x274e, 0x274e }, { 0x2753, 0x2755 }, { 0x2757, 0x2757 },
        { 0x2763, 0x2767 }, { 0x2795, 0x2797 }, { 0x27a1, 0x27a1 }, { 0x27b0, 0x27b0 }, { 0x27bf, 0x27bf },
        { 0x2934, 0x2935 }, { 0x2b05, 0x2b07 }, { 0x2b1b, 0x2b1c }, { 0x2b50, 0x2b50 }, { 0x2b55, 0x2b55 },
        { 0x3030, 0x3030 }, { 0x303d, 0x303d }, { 0x3297, 0x3297 }, { 0x3299, 0x3299 }, { 0x1f000, 0x1f0ff },
        { 0x1f10d, 0x1f10f }, { 0x1f12f, 0x1f12f }, { 0x1f16c, 0x1f171 }, { 0x1f17e, 0x1f17f }, { 0x1f18e, 0x1f18e },
        { 0x1f191, 0x1f19a }, { 0x1f1ad, 0x1f1e5 }, { 0x1f201, 0x1f20f }, { 0x1f21a, 0x1f21a }, { 0x1f22f, 0x1f22f },
        { 0x1f232, 0x1f23a }, { 0x1f23c, 0x1f23f }, { 0x1f249, 0x1f3fa }, { 0x1f400, 0x1f53d }, { 0x1f546, 0x1f64f },
        { 0x1f680, 0x1f6ff }, { 0x1f774, 0x1f77f }, { 0x1f7d5, 0x1f7ff }, { 0x1f80c, 0x1f80f }, { 0x1f848, 0x1f84f },
        { 0x1f85a, 0x1f85f }, { 0x1f888, 0x1f88f }, { 0x1f8ae, 0x1f8ff }, { 0x1f90c, 0x1f93a }, { 0x1f93c, 0x1f945 },
        { 0x1f947, 0x1faff }, { 0x1fc00, 0x1fffd },
};

static bool is_picture(gunichar c) {
        size_t low = 0, high = G_N_ELEMENTS(pictures);

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (c > pictures[middle].last)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < G_N_ELEMENTS(pictures) && c >= pictures[low].first;
}

static bool is_regional_indicator(gunichar c) {
        return c >= 0x1f1e6 && c <= 0x1f1ff;
}

static bool is_skin_tone(gunichar c) {
        return c >= 0x1f3fb && c <= 0x1f3ff;
}

static bool is_keycap_base(gunichar c) {
        return c == '#' || c == '*' || (c >= '0' && c <= '9');
}

static bool is_mark(gunichar c) {
        return c > 0 && (wcwidth((wchar_t) c) == 0 || g_unichar_type(c) == G_UNICODE_SPACING_MARK);
}

/* The part of a cluster that was read so far. */
typedef struct Cluster {
        gunichar first, last;
        bool is_picture; /* the first character is a picture */
        bool is_flag;    /* it has both regional indicators; only marks may follow */
        size_t width;
} Cluster;

/* Adds the character after the cluster, if it belongs to the cluster. */
static bool cluster_take(Cluster *cluster, gunichar c) {
        if (cluster->is_picture && ((cluster->last == JOINER && is_picture(c)) || is_skin_tone(c)))
                cluster->width = 2;
        else if (is_regional_indicator(c) && is_regional_indicator(cluster->last) && !cluster->is_flag) {
                cluster->is_flag = true;
                cluster->width = 2;
        } else if (c == EMOJI_PRESENTATION && (cluster->is_picture || is_keycap_base(cluster->first)))
                cluster->width = 2;
        else if (is_mark(c))
                cluster->width += (size_t) MAX(wcwidth((wchar_t) c), 0);
        else
                return false;
        cluster->last = c;
        return true;
}

size_t format_next_cluster(const char *text, size_t size, size_t *ret_width) {
        size_t done, taken;
        Cluster cluster;
        gunichar c;

        if (!format_next_character(text, size, &c, &done)) {
                *ret_width = 0;
                return 1;
        }
        cluster = (Cluster) {
                .first = c,
                .last = c,
                .is_picture = is_picture(c),
                .width = (size_t) MAX(wcwidth((wchar_t) c), 0),
        };
        if (wcwidth((wchar_t) c) >= 0)
                while (done < size && (unsigned char) text[done] >= 0x80 &&
                       format_next_character(text + done, size - done, &c, &taken) && cluster_take(&cluster, c))
                        done += taken;
        *ret_width = cluster.width;
        return done;
}
