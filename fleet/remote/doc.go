// Package remote runs commands and puts files on hosts over SSH. It is the only
// door to SSH.
//
// A [Client] is made once per process, a [Conn] once per host and attempt:
//
//	client, err := remote.New(remote.Default())
//	conn, err := client.Connect(ctx, host)
//	defer conn.Close()
//	result, err := conn.Run(ctx, remote.Command{Shell: "uname -a", Bound: time.Minute})
//
// What holds:
//   - Every phase has its own deadline, none of them can be switched off: TCP,
//     handshake, login, channel, silence, the whole command. Whoever is at the
//     other end, no call lasts longer than the sum of them; but a host that says
//     that it has too many connections is tried a few times.
//   - A host is who the inventory says, by its host keys or by an authority that
//     certifies them, or it is refused. Nothing is asked and nothing is learned.
//   - Hosts behind jump hosts share one connection to each of these. Only so many
//     log in to one sshd at a time, and more only while it bears that; at a jump host
//     that holds for all processes of a node together.
//   - A command is bounded on the host itself, by timeout(1). Closing a
//     connection stops nothing there: a command goes on until its bound.
//   - [Command].Stop does stop it there, and says so only if nothing of its
//     process group was left. What a command put into a session of its own
//     (setsid, a daemon) is not part of that group and lives on.
//   - An [Error] says whether the command had been sent. What was sent and not
//     answered may have run: that is [KindLost], and never "did not run".
//   - A command with a [Record] is started once, on hosts that can keep one. What was
//     begun is found again over any connection, with its output and its end. An upload
//     with one puts its file in place only if no newer attempt has been there.
//   - Output is always drained and kept within bounds, as the bytes that came.
//     [Printable] makes them harmless for a terminal.
//
// What it does not do: no terminal (pty) but in [Conn.Shell], no forwarding of the
// agent, no retry, no log. It knows nothing of jobs; a [Kind] is what its caller
// decides by.
//
// Floor 1: may import fleet, internal/proc.
package remote
