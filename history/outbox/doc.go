// Package outbox keeps notifications in SQL, from what happened to messages that have arrived. What
// happened is written in the transaction that stores it in history, so nothing is lost between the
// two. A message is written once, and every try sends the same bytes under the same id.
//
// Floor 4: may import history and notify.
package outbox
