// Package snapshot copies all tables of a history as they were at one moment, and replaces all
// tables by such a copy. It knows no table: one that is added is copied, too. A copy of SQLite fits
// into PostgreSQL, and the other way.
//
// Floor 4: may import history and below.
package snapshot
