package machine

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// An upload is a client's request to bring a file; this file answers fleet/remote/uploadsh.go.
type upload struct {
	process *process
	ctx     context.Context
	streams
	to, dir, parts, sum, nonce string
	mode                       uint32
	size                       int64
}

// upload answers a request, as a whole or one phase of it.
func (p *process) upload(ctx context.Context, text string, args []string, s streams) Status {
	_, text, _ = strings.Cut(text, "\n") // phase=${1:-both}
	line, _, _ := strings.Cut(text, "\n")
	words := plainWords(line)
	if len(words) != 9 {
		fmt.Fprintln(s.out, "sh: the upload is not understood")
		return Status{Code: 2}
	}
	mode, _ := strconv.ParseUint(words[7], 8, 32)
	size, _ := strconv.ParseInt(words[8], 10, 64)
	u := &upload{p, ctx, s, words[2], words[3], words[4], words[5], words[6], uint32(mode), size}
	switch phase := strings.Join(args, " "); phase {
	case "place":
		return u.place()
	case "same":
		return u.keep()
	case "drop":
		_ = u.process.machine.disk().remove(u.part(), false) // it may never have begun
		return Status{}
	case "fetch":
		return u.fetch(true)
	}
	return u.fetch(false)
}

func (u *upload) part() string { return u.parts + u.sum + "-" + u.nonce + ".part" }

func (u *upload) say(format string, args ...any) {
	fmt.Fprintf(u.out, u.nonce+" "+format+"\n", args...)
}

// no refuses the request, before anything is sent.
func (u *upload) no(format string, args ...any) Status {
	u.say("no")
	return u.wrong(format, args...)
}

func (u *upload) wrong(format string, args ...any) Status {
	fmt.Fprintf(u.out, format+"\n", args...)
	return Status{Code: 1}
}

// The exit codes of a fetch that another phase will finish.
const (
	fetched     = 66
	fetchedSame = 67
	otherSum    = 65
)

// fetch receives the content, unless it is there already.
func (u *upload) fetch(alone bool) Status {
	d := u.process.machine.disk()
	if n, ok := d.stat(u.to); ok && n.dir {
		return u.no("%s is a directory", u.to)
	} else if ok && sumOf(n.data) == u.sum {
		u.say("same")
		if alone {
			return Status{Code: fetchedSame}
		}
		return u.keep()
	}
	if n, ok := d.stat(u.dir); !ok || !n.dir {
		return u.no("there is no directory %s", u.dir)
	}
	n, have, err := u.begin()
	if err != nil {
		return u.no("%s cannot be written: %s", u.dir, err)
	}
	in := bufio.NewReader(reader{u.ctx, u.process.cmd.In})
	from, err := in.ReadString('\n')
	if err != nil {
		_ = d.remove(u.part(), false) // the next upload sends all of it again
		return Status{Code: 1}
	}
	if from = strings.TrimSpace(from); from == "0" && have > 0 {
		n, err = d.create(u.part(), false, 0o600)
	} else if from != strconv.FormatInt(have, 10) {
		return Status{Code: 1}
	}
	if err == nil {
		_, err = io.Copy(onDisk{d, n}, in)
	}
	if err != nil {
		_ = d.remove(u.part(), false) // it is incomplete
		return u.wrong("cat: %s: %s", u.part(), err)
	}
	return u.check(alone)
}

// begin makes the part, from the bytes of an earlier upload of the same content.
func (u *upload) begin() (n *node, have int64, err error) {
	d := u.process.machine.disk()
	var kept []byte
	for _, name := range d.list(u.dir) {
		full := path.Join(u.dir, name)
		if !strings.HasPrefix(full, u.parts) || !strings.HasSuffix(full, ".part") {
			continue
		}
		if old, ok := d.stat(full); ok && strings.HasPrefix(full, u.parts+u.sum+"-") &&
			len(old.data) > len(kept) && int64(len(old.data)) <= u.size {
			kept = old.data
		}
		_ = d.remove(full, false) // the needed bytes are in kept
	}
	if n, err = d.create(u.part(), false, 0o600); err == nil {
		err = d.append(n, kept)
	}
	if err != nil {
		return nil, 0, err
	}
	sum := "-"
	if len(kept) > 0 {
		sum = sumOf(kept)
	}
	u.say("have %d %s", len(kept), sum)
	return n, int64(len(kept)), nil
}

// check verifies the received bytes.
func (u *upload) check(alone bool) Status {
	d := u.process.machine.disk()
	n, ok := d.stat(u.part())
	got := sumOf(n.data)
	switch {
	case !ok:
	case int64(len(n.data)) < u.size:
		return u.wrong("only %d bytes of %d came", len(n.data), u.size)
	case got != u.sum:
		_ = d.remove(u.part(), false) // it is another content
		u.wrong("sha256 on the host is %s, expected %s", got, u.sum)
		return Status{Code: otherSum}
	}
	if alone {
		return Status{Code: fetched}
	}
	return u.place()
}

// place moves the received file to its place.
func (u *upload) place() Status {
	d := u.process.machine.disk()
	if _, ok := d.stat(u.part()); !ok {
		return u.wrong("another upload of %s took its place", u.to)
	}
	err := d.chmod(u.part(), u.mode)
	if err == nil {
		err = d.rename(u.part(), u.to)
	}
	if err != nil {
		return u.wrong("mv: %s: %s", u.to, err)
	}
	u.say("done")
	return Status{}
}

// keep sets the mode of a file that is there already.
func (u *upload) keep() Status {
	if err := u.process.machine.disk().chmod(u.to, u.mode); err != nil {
		return u.wrong("the mode of %s cannot be changed", u.to)
	}
	u.say("done")
	return Status{}
}

func sumOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }
