package hosts

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/cli"
	"muster/cli/watch"
	"muster/fleet"
	"muster/fleet/remote"
)

// finding is one finding about a host.
type finding struct {
	What  string `json:"what"`         // host_key, auth, sudo, clock, disk, record, …
	Text  string `json:"text"`         // the problem, or the fact
	Do    string `json:"do,omitempty"` // the remedy
	Wrong bool   `json:"wrong"`        // else the finding is for information
}

// The limits for a host.
const (
	clockMax = 5 * time.Second
	diskMin  = 64 << 10 // KiB where records are kept: outputs of 64 KiB for a week of jobs
)

// connectFinding explains why the connection to a host failed.
func connectFinding(err error) finding {
	kind := remote.KindOf(err)
	f := finding{What: string(kind), Text: err.Error(), Wrong: true}
	f.Do = "look at the host, and check it again"
	var e *remote.Error
	if errors.As(err, &e) {
		f.Text = e.Err.Error() // without the host: the same text groups hosts
	}
	switch kind {
	case remote.KindUnreachable:
		f.Do = "look whether it is on, and whether address, port and firewall let this machine in"
	case remote.KindThrottled:
		f.Do = "it has too many connections: raise its MaxStartups, or check with --parallel 4"
	case remote.KindHostKey:
		f.Do = "find out whether it was reinstalled; then muster hosts enroll, --replace if so"
	case remote.KindAuth:
		f.Do = "put the public key into authorized_keys of that user there"
	case remote.KindKey:
		f.Do = "this machine cannot use that key: give --identity, or --config with the " +
			"passphrase_file of a node, or check from a node. An agent is asked only where the " +
			"inventory names no key"
	case remote.KindRefused:
		f.Do = "it speaks SSH and nothing that we speak: see its profile in the inventory"
	case remote.KindCancelled:
		f.What, f.Do = "timeout", "it took longer than --within allows"
	}
	return f
}

// hostProbe runs in a shell on a host. It changes nothing: it removes the file that it makes in a
// folder of records to see whether it can write there.
type hostProbe struct {
	nonce      string
	dir        string // folder of records, if the host allows it
	sudo       bool
	sent, back time.Time
}

func newHostProbe(dir string, sudo bool) *hostProbe {
	return &hostProbe{nonce: "muster-" + rand.Text(), dir: dir, sudo: sudo}
}

// RecordTools are the programs that a host needs to keep a record of attempts.
const RecordTools = "flock setsid timeout dd tail head wc cat mv rm ls mkdir sync sleep"

// script prints lines of nonce, key and value, because login shells add lines of their own.
func (p *hostProbe) script() string {
	sudo := ""
	if p.sudo {
		sudo = `if out=$(sudo -n true 2>&1); then say sudo ok; else say sudo "no $out"; fi`
	}
	dir := "'" + strings.ReplaceAll(p.dir, "'", `'\''`) + "'"
	words := []string{"NONCE", p.nonce, "TOOLS", RecordTools, "SUDO", sudo, "DIR", dir}
	return strings.NewReplacer(words...).Replace(
		`say() { printf '%s %s\n' NONCE "$*"; }
say now "$(date +%s)"
lack=
for tool in TOOLS; do
	command -v "$tool" >/dev/null 2>&1 || lack="$lack $tool"
done
for file in /proc/sys/kernel/random/boot_id /proc/uptime /proc/$$/stat; do
	[ -r "$file" ] || lack="$lack $file"
done
say lack "$lack"
place= stuck=
for dir in "${HOME:-/}/.local/state/muster-record" DIR; do
	[ -d "$dir" ] && [ ! -L "$dir" ] && [ -O "$dir" ] || continue
	[ -e "$dir/born" ] || case $(stat -f -c %T "$dir" 2>/dev/null) in tmpfs | ramfs) continue ;; esac
	place=$dir # it is used for good
	try=$dir/check.$$
	(umask 077; echo NONCE >"$try") 2>/dev/null && rm -f "$try" || stuck=$dir
	rm -f "$try" 2>/dev/null
	break
done
say stuck "$stuck"
[ -n "$place" ] || for dir in DIR "${HOME:-/}/.local/state/muster-record"; do
	at=$dir
	while [ -n "$at" ] && [ ! -e "$at" ]; do
		case $at in */*) at=${at%/*} ;; *) at= ;; esac
	done
	at=${at:-/}
	[ -d "$at" ] && [ -w "$at" ] && [ -x "$at" ] || continue
	[ "$at" != "$dir" ] || [ -O "$dir" ] || continue
	place=$at
	break
done
say place "$place"
[ -z "$place" ] || say free "$( (df -Pk "$place" | tail -n 1 | tr -s ' ' | cut -d ' ' -f 4) 2>/dev/null)"
SUDO
say end
`)
}

// judge turns the answers into findings.
func (p *hostProbe) judge(h fleet.Host, said string, code int, err error) []finding {
	answers, noise := p.answers(said)
	if _, ended := answers["end"]; !ended {
		return p.silent(h, code, err)
	}
	list := []finding{}
	if noise {
		list = append(list, finding{What: "shell", Text: "its login shell says something of its own",
			Do: "let its start-up files be silent where there is no terminal"})
	}
	list = append(list, p.clock(answers["now"])...)
	list = append(list, disk(answers["place"], answers["free"])...)
	list = append(list, p.record(h.Fence, answers["lack"], answers["place"])...)
	if dir := answers["stuck"]; dir != "" && h.Fence != fleet.FenceNone {
		list = append(list, finding{What: "record", Wrong: true,
			Text: "its folder of records, " + remote.Name(dir) + ", cannot be written: every step " +
				"fails there",
			Do: "look at its disk: full, or mounted read-only?"})
	}
	if why, no := strings.CutPrefix(answers["sudo"], "no"); no {
		list = append(list, finding{What: "sudo", Wrong: true,
			Text: "sudo without a password is refused, it said: " +
				remote.Quote([]byte(cli.FirstLine(why)), watch.LineColumns),
			Do: "give that user a line with NOPASSWD in sudoers"})
	}
	return list
}

// answers splits the lines. noise reports that there were other lines before them.
func (p *hostProbe) answers(said string) (answers map[string]string, noise bool) {
	answers = map[string]string{}
	for line := range strings.Lines(said) {
		text, ours := strings.CutPrefix(strings.TrimRight(line, "\r\n"), p.nonce+" ")
		if !ours {
			noise = noise || len(answers) == 0
			continue
		}
		key, value, _ := strings.Cut(text, " ")
		answers[key] = strings.TrimSpace(value)
	}
	return answers, noise
}

// silent returns the finding for a host that accepts the login and gives no shell.
func (p *hostProbe) silent(h fleet.Host, code int, err error) []finding {
	f := finding{What: "shell", Wrong: h.Fence != fleet.FenceNone,
		Do: "if it is an appliance say fence: none in the inventory"}
	switch {
	case remote.KindOf(err) == remote.KindCancelled:
		f.Text, f.Wrong, f.Do = "it let us in, and answered nothing in time", true, "look at it"
	case err != nil:
		f = connectFinding(err)
		f.Text = "it let us in, but: " + f.Text
	default:
		f.Text = fmt.Sprintf("it has no POSIX shell for us: sh ended with %d", code)
	}
	if !f.Wrong {
		f.Do = ""
	}
	return []finding{f}
}

// clock compares the host's clock with ours, which was read before and after.
func (p *hostProbe) clock(now string) []finding {
	seconds, err := strconv.ParseInt(now, 10, 64)
	if err != nil {
		return []finding{{What: "clock", Text: "it does not tell the time (date +%s)"}}
	}
	at := time.Unix(seconds, 0)
	off, way := time.Duration(0), ""
	switch {
	case at.Before(p.sent.Add(-time.Second)): // it has whole seconds
		off, way = p.sent.Sub(at).Truncate(time.Second), "behind"
	case at.After(p.back):
		off, way = at.Sub(p.back), "ahead"
	}
	if off <= clockMax {
		return nil
	}
	return []finding{{What: "clock", Text: "its clock is " + cli.Span(off) + " " + way, Wrong: true,
		Do: "have it follow NTP; times in its logs are wrong, and certificates may be"}}
}

func disk(place, free string) []finding {
	kib, err := strconv.ParseInt(free, 10, 64)
	if place == "" || err != nil || kib >= diskMin {
		return nil
	}
	return []finding{{What: "disk", Wrong: true, Text: fmt.Sprintf("%d MB free in %s", kib>>10,
		remote.Name(place)),
		Do: fmt.Sprintf("make room: want %d MB", diskMin>>10)}}
}

// record reports whether a host can keep a record of attempts, if its fence needs one.
func (p *hostProbe) record(fence fleet.Fence, lack, place string) []finding {
	var why []string
	if lack != "" {
		why = append(why, "it lacks "+remote.Missing(lack))
	}
	if place == "" {
		why = append(why, fmt.Sprintf("it has no writable place, neither %s nor a home", p.dir))
	}
	if fence == fleet.FenceNone || len(why) == 0 {
		return nil
	}
	return []finding{{What: "record", Wrong: fence == fleet.FenceRequired,
		Text: "unfenced, it cannot keep a record of attempts: " + strings.Join(why, "; "),
		Do: fmt.Sprintf("install what is missing (util-linux, coreutils), or make %s for that user",
			p.dir)}}
}
