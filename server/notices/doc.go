// Package notices shows notifications: the messages with their tries, the receivers, and a way to
// try one. A caller with limited rights sees the messages that concern only tasks of theirs.
//
// Floor 6: may import history/outbox, notify, server/herald, server/web and what is below.
package notices
