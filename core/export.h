// core/export.h - marks what libkassette.so exports; all else is hidden.
#ifndef KASSETTE_EXPORT_H
#define KASSETTE_EXPORT_H

#define KASSETTE_API __attribute__((visibility("default")))

#endif  // KASSETTE_EXPORT_H
