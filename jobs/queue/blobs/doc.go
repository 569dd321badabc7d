// Package blobs stores contents that are too large for a task, in chunks under their SHA-256, and
// keeps each as long as an open task needs it.
//
// Floor 4: may import the connection and all below it.
package blobs
