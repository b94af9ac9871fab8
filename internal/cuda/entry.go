package cuda

// Entry is a driver function whose address is needed instead of a call: for programs of calls that C code runs, and to find out
// whether the driver has it. driver.spec lists them.
type Entry uint8

// Addr returns the function's address. The error is a *MissingError.
func (e Entry) Addr() (uintptr, error) { return entries[e].Addr() }

// String returns the exported symbol.
func (e Entry) String() string { return entries[e].Name() }
