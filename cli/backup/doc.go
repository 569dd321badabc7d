// Package backup has the command backup: it copies all that an installation keeps in Redis and in
// SQL into one encrypted file, and makes a house of such a file again, in which nothing runs twice.
//
// Redis is read first, then SQL: so SQL knows of each job at least what Redis does.
//
// Floor 12: may import cli/reach, internal/settings, jobs/queue/archive, history/snapshot, and what
// is below.
package backup
