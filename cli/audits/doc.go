// Package audits has the command audit: it lists, shows, examines, proves and exports the audit
// log. It examines what it has read by itself, and believes no server.
//
// Floor 6: may import audit, cli and what is below.
package audits
