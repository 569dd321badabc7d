// Package blobs stores contents that are too large for a task, in chunks under their
// SHA-256, and keeps each as long as a task that has not ended needs it.
//
// Floor 4: may import the connection and all below it.
package blobs
