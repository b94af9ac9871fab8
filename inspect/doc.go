// Package inspect makes artifacts readable: what they hold as tables and JSON, and how two of them differ.
//
// In: artifacts that were read and checked. Out: plain values whose JSON form is the contract (fields are only ever
// added) and whose tables are for people. What can fail: writing, and asking for a graph that is not there (*NotFoundError).
// Nothing here touches a device or a file.
package inspect
