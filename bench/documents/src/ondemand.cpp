// The document by simdjson's On-Demand interface, the whole file in memory.
#include "simdjson.h"

// Appends up to `room` pairs to four columns; how many there are, or minus one if it is no such document.
extern "C" long ondemand_pairs(const char *path, double *columns[4], size_t room) {
    auto text = simdjson::padded_string::load(path);
    if (text.error()) return -1;
    static simdjson::ondemand::parser parser;
    simdjson::ondemand::document document;
    simdjson::ondemand::array pairs;
    if (parser.iterate(text.value_unsafe()).get(document) || document["pairs"].get_array().get(pairs)) return -1;
    static const char *const names[4] = {"x0", "y0", "x1", "y1"};
    size_t at = 0;
    for (auto item : pairs) {
        simdjson::ondemand::object pair;
        if (at == room || item.get_object().get(pair)) return -1;
        for (int column = 0; column < 4; column++) {
            // Looks on from the last key first: the order is the expected one.
            if (pair.find_field_unordered(names[column]).get_double().get(columns[column][at])) return -1;
        }
        at++;
    }
    return static_cast<long>(at);
}
