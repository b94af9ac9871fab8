// Package inspect makes artifacts readable: it shows their contents as tables and JSON, and the differences of two artifacts.
//
// In: artifacts that were read and checked. Out: plain values with a JSON form and a table. The JSON form is the contract; fields
// are only ever added. Fails: writing, and a request for a graph that does not exist (*NotFoundError). This package uses no
// device and no file.
package inspect
