package machine

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// options splits the arguments of a tool into the given letters and the operands.
func (c *call) options(known string) (given string, operands []string, err error) {
	args := c.args
	for ; len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-'; args = args[1:] {
		if args[0] == "--" {
			args = args[1:]
			break
		}
		if bad := strings.Trim(args[0][1:], known); bad != "" {
			return "", nil, fmt.Errorf("invalid option -- '%s'", bad)
		}
		given += args[0][1:]
	}
	return given, args, nil
}

// contents opens a file, or stdin for "-".
func (c *call) contents(name string) (io.Reader, error) {
	if name == "-" {
		return c.in, nil
	}
	data, err := c.machine.disk().read(c.path(name))
	return bytes.NewReader(data), err
}

// each opens the files one after the other, or stdin if there are none.
func (c *call) each(names []string, use func(name string, r io.Reader) error) Status {
	if len(names) == 0 {
		names = []string{"-"}
	}
	worst := Status{}
	for _, name := range names {
		r, err := c.contents(name)
		if err == nil {
			err = use(name, r)
		}
		if errors.Is(err, ErrKilled) || errors.Is(err, ErrNoReader) {
			return Status{Code: 1}
		}
		if err != nil {
			worst = c.fail(1, "%s: %s", name, err)
		}
	}
	return worst
}

func runCat(c *call) Status {
	_, names, err := c.options("u")
	if err != nil {
		return c.fail(1, "%s", err)
	}
	return c.each(names, func(_ string, r io.Reader) error {
		_, err := io.Copy(c.out, r)
		return err
	})
}

func runSha256sum(c *call) Status {
	_, names, err := c.options("b")
	if err != nil {
		return c.fail(1, "%s", err)
	}
	return c.each(names, func(name string, r io.Reader) error {
		h := sha256.New()
		if _, err := io.Copy(h, r); err != nil {
			return err
		}
		c.say("%x  %s\n", h.Sum(nil), name)
		return nil
	})
}

func runChmod(c *call) Status {
	if len(c.args) < 2 {
		return c.fail(1, "missing operand")
	}
	mode, err := strconv.ParseUint(c.args[0], 8, 12)
	symbolic := strings.Trim(c.args[0], "ugoarwxXst+-=,") == ""
	if err != nil && !symbolic {
		return c.fail(1, "invalid mode: '%s'", c.args[0])
	}
	worst := Status{}
	for _, name := range c.args[1:] {
		m := uint32(mode)
		if symbolic {
			n, _ := c.machine.disk().stat(c.path(name))
			if m = n.mode; strings.Contains(c.args[0], "+x") {
				m |= 0o111
			}
		}
		if err := c.machine.disk().chmod(c.path(name), m); err != nil {
			worst = c.fail(1, "cannot access '%s': %s", name, err)
		}
	}
	return worst
}

// target returns the name of a file that is moved or copied to a name.
func (c *call) target(from, to string) string {
	if n, ok := c.machine.disk().stat(c.path(to)); ok && n.dir {
		return path.Join(c.path(to), path.Base(from))
	}
	return c.path(to)
}

func runMv(c *call) Status {
	_, names, err := c.options("fnTv")
	if err != nil || len(names) != 2 {
		return c.fail(1, "want two names")
	}
	err = c.machine.disk().rename(c.path(names[0]), c.target(names[0], names[1]))
	if err != nil {
		return c.fail(1, "cannot move '%s' to '%s': %s", names[0], names[1], err)
	}
	return Status{}
}

func runMkdir(c *call) Status {
	var names []string
	parents := false
	for i := 0; i < len(c.args); i++ {
		switch a := c.args[i]; {
		case a == "-m" || a == "-pm":
			parents = parents || a == "-pm"
			i++
		case a == "-p":
			parents = true
		case a != "--":
			names = append(names, a)
		}
	}
	worst := Status{}
	for _, name := range names {
		if err := c.machine.disk().mkdirs(c.path(name), parents); err != nil {
			worst = c.fail(1, "cannot create directory '%s': %s", name, err)
		}
	}
	return worst
}

// mkdirs also makes the parents, if asked, and then accepts what exists.
func (d *disk) mkdirs(name string, parents bool) error {
	if !parents {
		return d.mkdir(name)
	}
	if n, ok := d.stat(name); ok {
		if n.dir {
			return nil
		}
		return hasEntry
	}
	if err := d.mkdirs(path.Dir(name), true); err != nil {
		return err
	}
	return d.mkdir(name)
}

func runCp(c *call) Status {
	_, names, err := c.options("afpv")
	if err != nil || len(names) != 2 {
		return c.fail(1, "want two names")
	}
	d := c.machine.disk()
	data, err := d.read(c.path(names[0]))
	if err == nil {
		var n *node
		if n, err = d.create(c.target(names[0], names[1]), false, 0o644); err == nil {
			err = d.append(n, data)
		}
	}
	if err != nil {
		return c.fail(1, "cannot copy '%s' to '%s': %s", names[0], names[1], err)
	}
	return Status{}
}

func runRmdir(c *call) Status {
	for _, name := range c.args {
		n, ok := c.machine.disk().stat(c.path(name))
		var err error = noEntry
		switch {
		case ok && !n.dir:
			err = notDir
		case ok:
			err = c.machine.disk().remove(c.path(name), false)
		}
		if err != nil {
			return c.fail(1, "failed to remove '%s': %s", name, err)
		}
	}
	return Status{}
}

func runRm(c *call) Status {
	given, names, err := c.options("frRdv")
	if err != nil {
		return c.fail(1, "%s", err)
	}
	force, all := strings.Contains(given, "f"), strings.ContainsAny(given, "rR")
	worst := Status{}
	for _, name := range names {
		n, ok := c.machine.disk().stat(c.path(name))
		var err error
		switch {
		case !ok && force:
			continue
		case ok && n.dir && !all:
			err = isDir
		default:
			err = c.machine.disk().remove(c.path(name), all)
		}
		if err != nil {
			worst = c.fail(1, "cannot remove '%s': %s", name, err)
		}
	}
	return worst
}

func runLs(c *call) Status {
	given, names, err := c.options("1Adahl")
	if err != nil {
		return c.fail(2, "%s", err)
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	worst := Status{}
	for _, name := range names {
		n, ok := c.machine.disk().stat(c.path(name))
		switch {
		case !ok:
			worst = c.fail(2, "cannot access '%s': %s", name, noEntry)
		case n.dir && !strings.Contains(given, "d"):
			for _, entry := range c.machine.disk().list(c.path(name)) {
				c.say("%s\n", entry)
			}
		default:
			c.say("%s\n", name)
		}
	}
	return worst
}

func runTouch(c *call) Status {
	worst := Status{}
	for _, name := range c.args {
		if n, ok := c.machine.disk().stat(c.path(name)); ok && n.dir {
			continue
		}
		if _, err := c.machine.disk().create(c.path(name), true, 0o644); err != nil {
			worst = c.fail(1, "cannot touch '%s': %s", name, err)
		}
	}
	return worst
}

// runHead supports -n and -c.
func runHead(c *call) Status {
	names, inBytes, n := c.args, false, int64(10)
	if len(names) > 1 && (names[0] == "-n" || names[0] == "-c") {
		var err error
		if n, err = strconv.ParseInt(names[1], 10, 64); err != nil || n < 0 {
			return c.fail(1, "invalid number: '%s'", names[1])
		}
		inBytes, names = names[0] == "-c", names[2:]
	}
	return c.each(names, func(_ string, r io.Reader) error {
		if inBytes {
			_, err := io.Copy(c.out, io.LimitReader(r, n))
			return err
		}
		return copyLines(c.out, bufio.NewReader(r), n)
	})
}

func copyLines(w io.Writer, r *bufio.Reader, n int64) error {
	for ; n > 0; n-- {
		line, err := r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			n++ // the line continues
		} else if err != nil && err != io.EOF {
			return err
		}
		if _, werr := w.Write(line); werr != nil || err == io.EOF {
			return werr
		}
	}
	return nil
}

func runWc(c *call) Status {
	given, names, err := c.options("cl")
	if err != nil || len(given) != 1 {
		return c.fail(1, "want -c or -l")
	}
	return c.each(names, func(name string, r io.Reader) error {
		n, buf := 0, make([]byte, chunkMax)
		for {
			got, err := r.Read(buf)
			if given == "c" {
				n += got
			} else {
				n += bytes.Count(buf[:got], []byte("\n"))
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
		}
		c.say("%s\n", strings.TrimSuffix(fmt.Sprintf("%d %s", n, name), " -"))
		return nil
	})
}
