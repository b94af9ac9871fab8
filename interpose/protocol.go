package interpose

// Protocol is MEDUSA_PROTOCOL of preload/medusa.h: the version of the contract between the interposer and the engine's
// process.
const Protocol = 1
