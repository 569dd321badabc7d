package hosts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"muster/cli"
	"muster/fleet"
	"muster/fleet/remote"
	"muster/scripts"
)

// sudoCommand returns a shell of the user whom commands on the host run as, without a password.
func sudoCommand(h fleet.Host) (string, error) {
	return scripts.ShellCommand([]string{"env", "LC_ALL=C", "sudo", "-n", "-H", "-u", h.BecomesUser(),
		"--", "sh"})
}

// ask makes a command of the host, a shell, run the script.
func (p *hostProbe) ask(ctx context.Context, conn *remote.Conn, command string) (said string,
	code int, err error) {
	var heard bounded
	p.sent = time.Now()
	code, err = conn.Shell(ctx, remote.Terminal{Command: command, Stdin: strings.NewReader(p.script()),
		Stdout: &heard, Stderr: &heard})
	p.back = time.Now()
	return heard.text(), code, err
}

// ended reports whether the script reached its end.
func (p *hostProbe) ended(said string) bool {
	answers, _ := p.answers(said)
	_, ended := answers["end"]
	return ended
}

// withoutSudo finds out what the login user of a host can see: not the records, which belong to the
// user whom its commands run as.
func (p *hostProbe) withoutSudo(ctx context.Context, conn *remote.Conn, h fleet.Host) []finding {
	h.Fence = fleet.FenceNone
	said, code, err := p.ask(ctx, conn, "sh")
	return p.judge(h, said, code, err)
}

// sudoFinding returns the finding for a host whose sudo does not allow another user without a
// password. If sudo asks for one, a task can bring it.
func sudoFinding(h fleet.Host, said string) finding {
	f := finding{What: "sudo", Wrong: true, Text: fmt.Sprintf("sudo does not let %s run sh as %s: %s",
		h.User, h.BecomesUser(), cli.FirstLine(strings.TrimSpace(said)))}
	f.Do = "give that user a line in sudoers, or say become: none in the inventory"
	if strings.Contains(said, "password is required") {
		f.Wrong = false
		f.Do = "tasks need --become-password there; or give that user a line with NOPASSWD in sudoers. " +
			"Its records were not looked at"
	}
	return f
}
