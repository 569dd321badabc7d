// Package bundle has the command support-bundle: it puts what somebody far away needs to find a
// fault into one archive, without a secret.
//
// Three things keep secrets out. Each thing that is put in is named: the values of the
// configuration that may be shown, the fields of tasks and of the audit log, the sections of
// Redis; nothing is put in because it is there. Then all texts are searched for the secrets that
// the configuration and its files hold, and for what looks like one. Arguments, output of hosts,
// and the words of people are no part of it at all.
//
// Floor 13: may import cli/doctor, internal/settings, and what is below.
package bundle
