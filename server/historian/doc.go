// Package historian writes history: it stores the events of all zones in SQL, with what Redis
// knows of their jobs, and trims the streams behind it. Exactly one server does that at a time.
//
// History is also the memory of a Redis that has lost something: the historian keeps a copy of
// what people have agreed, notices a Redis that went back in time, and lets no job start there
// before the zone was told which jobs have ended.
//
// Floor 5: may import history, the handles of jobs/queue, and what is below.
package historian
