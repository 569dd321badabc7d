// Package files reads the files that people name: inventories, keys, passwords, runbooks.
//
// A name in a configuration may lead to anything: a named pipe that nobody writes to, a device
// that never ends, a file system whose server is away. [Read] takes regular files only, reads
// no more than it is told, and gives up after a while.
//
// Floor 0: may import the standard library.
package files
