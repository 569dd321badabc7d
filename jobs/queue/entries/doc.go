// Package entries keeps entries of muster apply as the texts that people wrote: triggers and
// whatever else servers follow. They are one version, which every server reads before it answers
// from it, in parts by kind and customer: a change of one part writes and reads only that part.
//
// A server signs the head, which has the checksum of each part. So a part that somebody else wrote,
// took away or put back is not believed, and the other parts stay in force.
//
// Floor 5: may import jobs/queue and its hub, and what is below.
package entries
