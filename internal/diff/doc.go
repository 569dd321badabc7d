// Package diff tells how two texts differ, line by line.
//
// It is for what hosts say: texts of any bytes, some with a hundred thousand lines.
// The work is bounded; texts that differ in too much are told to differ in all that
// is not the same at their beginnings and ends. Lines come back as they are: who
// shows them makes them harmless.
//
// Floor 0: may import nothing of muster.
package diff
