// Package wording makes the small texts that all rooms need: it bounds what a message repeats
// of a text that somebody gave, puts a text on one line, counts things, and finds the word
// that somebody meant by one that nobody knows.
//
// It makes no text harmless, because the danger depends on the reader: package remote
// knows what a terminal would obey, the worker closes the quotes of a host where it cuts, and
// the report of a task knows which cells are formulas to a spreadsheet.
//
// It is not called words, because four packages have a type or a function of that name, and
// many functions a variable.
//
// Floor -1: imports the standard library only, and every package may import it.
package wording
