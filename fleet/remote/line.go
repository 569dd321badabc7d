package remote

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// killAfter is the time that a command gets to end after TERM before it is killed.
const killAfter = 5 * time.Second

// lineMax bounds the command line, because Linux limits one argument to 128 KiB.
const lineMax = 120 << 10

// The text that sh runs before the command, and in its place if it must be unpacked.
const (
	join   = `exec 2>&1; echo ` // and the nonce of a mark
	tell   = ` $$ $PPID; `
	unpack = `exec sh -c "$(printf %b "$1")"`
)

// remoteLine returns the line that runs text by sh on the host. timeout(1) bounds it there:
// after bound it sends TERM to the command and its children, and five seconds later
// KILL.
//
// The login shell parses the line, and it may be csh, fish or a restricted shell. These
// differ in quotes: csh expands '!' and ends at a newline even inside single quotes, fish
// interprets backslashes there. So a text with any of these is sent as escapes for printf,
// and sh unpacks it. The line does not begin with exec, because a restricted shell refuses
// that.
//
// On the host, sh joins standard error to standard output, because sshd reads two pipes
// separately and nobody could tell later which was written first. Then sh reports its process
// id before the text runs; see mark.
func remoteLine(text string, bound time.Duration, nonce string) (string, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return "", errors.New("the command is empty")
	case strings.IndexByte(text, 0) >= 0:
		return "", fmt.Errorf("the command has a NUL byte at %d: no shell can take that",
			strings.IndexByte(text, 0))
	case bound <= 0:
		return "", fmt.Errorf("bound = %s: a command must have one", bound)
	}
	if text[0] == '-' || text[0] == '+' {
		text = " " + text // otherwise sh would take it for options
	}
	line := fmt.Sprintf("timeout -k %d %d sh -c ", seconds(killAfter), seconds(bound))
	if plain(text) {
		line += quote(join + nonce + tell + text)
	} else {
		line += quote(join+nonce+tell+unpack) + " sh " + quote(escape(text))
	}
	if len(line) > lineMax {
		return "", fmt.Errorf("the command takes %d bytes to send, the most is %d: "+
			"upload it as a file or send it on stdin", len(line), lineMax)
	}
	return line, nil
}

// seconds rounds up, because timeout(1) of small systems accepts no fractions.
func seconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// plain reports whether all shells read text alike inside single quotes.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; !visible(c) || c == '\\' || c == '!' {
			return false
		}
	}
	return true
}

func visible(c byte) bool { return ' ' <= c && c <= '~' }

// quote makes text one word of a shell. It accepts any byte except NUL. A library that
// prefers double quotes would not do, because csh and fish treat those differently.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// escape encodes text for printf %b, with only bytes that no shell treats specially inside
// single quotes.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; visible(c) && c != '\\' && c != '!' && c != '\'' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\0%03o`, c)
		}
	}
	return b.String()
}
