package remote

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// killAfter is how long a command that was told to stop has until it is killed.
const killAfter = 5 * time.Second

// lineMax bounds the line that is sent: Linux gives one argument at most 128 KiB.
const lineMax = 120 << 10

// What sh is told before the text, and in its place when it has to be unpacked.
const (
	join   = `exec 2>&1; echo ` // and the nonce of a mark
	tell   = ` $$ $PPID; `
	unpack = `exec sh -c "$(printf %b "$1")"`
)

// remoteLine returns the line that runs text by sh on the host, bounded there by
// timeout(1): after bound TERM goes to the command and its children, and five
// seconds later KILL.
//
// The line goes through the login shell, which may be csh, fish or a restricted
// one. These differ in quotes: csh expands '!' and ends at a newline even in
// single quotes, fish takes backslashes there. So a text with any of these
// travels in escapes for printf and is unpacked by sh. The line does not begin
// with exec, which a restricted shell refuses.
//
// Standard error is joined to standard output there, by sh: sshd reads the two
// from two pipes, and nobody could tell later what was written first. Then sh says
// which process it is, before the text runs; see mark.
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
		text = " " + text // else sh takes it for its options
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

// seconds rounds up: timeout(1) of small systems knows no fractions.
func seconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// plain tells that all shells understand text alike when it is in single quotes.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; !visible(c) || c == '\\' || c == '!' {
			return false
		}
	}
	return true
}

func visible(c byte) bool { return ' ' <= c && c <= '~' }

// quote makes text one word of a shell. It takes any byte but NUL. (A quoter
// that prefers double quotes would not do: csh and fish differ there.)
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// escape writes text so that printf %b gives it back, in bytes that no shell
// treats specially within single quotes.
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
