// Package sensors measures the machine of a node: it reads /proc, the control group of the process
// in version 1 or 2, and how full file systems are.
//
// A machine without a file, such as /proc/pressure, is measured without it. A file that is there
// and cannot be understood is an error, beside all that could be read.
//
// Floor 1: may import internal/files, master/governor.
package sensors
