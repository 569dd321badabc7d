// Package remote runs commands and uploads files on hosts over SSH. No other package
// uses SSH.
//
// Create one [Client] per process, and one [Conn] per host and attempt:
//
//	client, err := remote.New(remote.Default())
//	conn, err := client.Connect(ctx, host)
//	defer conn.Close()
//	result, err := conn.Run(ctx, remote.Command{Shell: "uname -a", Bound: time.Minute})
//
// Guarantees:
//   - Every phase has its own deadline, and none can be switched off: TCP, handshake,
//     login, channel, silence, the whole command. No call lasts longer than the sum of
//     them, whatever the peer does; only a host that reports too many connections is
//     retried a few times.
//   - A host must prove its identity by a host key from the inventory or by an authority
//     that certifies it. Otherwise it is refused; nobody is asked, and no key is learned.
//   - Hosts behind a jump host share one connection to it. Logins to one sshd are paced,
//     and their number grows only while the sshd accepts them; at a jump host all
//     processes of a node are paced together.
//   - The host itself bounds each command, by timeout(1). Closing a connection stops
//     nothing there: a command continues until its bound.
//   - [Command].Stop does stop the command, and reports success only if its process group
//     is empty. Processes that the command moved to a session of their own (setsid, a
//     daemon) are not in that group and survive.
//   - An [Error] says whether the command had been sent. A command that was sent and not
//     answered may have run: that is [KindLost], never "did not run".
//   - A host that can keep records starts a command with a [Record] only once. A later
//     connection finds it again, with its output and its end. An upload with a record puts
//     its file in place only if the host has seen no newer attempt.
//   - Output is always drained and bounded, and its bytes are unchanged. [Printable] makes
//     them harmless for a terminal.
//
// It requests a terminal (pty) only in [Conn.Shell], never forwards an agent, does not
// retry commands and writes no log. It does not know jobs; its callers decide by the
// [Kind] of an error.
//
// Floor 1: may import fleet, internal/proc.
package remote
