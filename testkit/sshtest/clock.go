package sshtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A Clock is that of a host, as its programs read it: a date in front of all others, which
// is off by what the test says, and notes who asks.
type Clock struct {
	t   testing.TB
	dir string
}

const clockDate = `#!/bin/sh
echo "$*" >>'DIR/asked'
read -r off <'DIR/off'
PATH=/usr/bin:/bin
export PATH
exec date -d "@$(($(date +%s) + off))" "$@"
`

// NewClock makes one that is off by so much.
func NewClock(t testing.TB, off time.Duration) Clock {
	t.Helper()
	c := Clock{t: t, dir: t.TempDir()}
	c.write("date", strings.ReplaceAll(clockDate, "DIR", c.dir), 0o755)
	c.Set(off)
	return c
}

// On has the programs of a host read it. Its home is Home, unless the options say another.
func (c Clock) On(o Options) Options {
	config := []string{"SetEnv PATH=" + c.dir + ":/usr/bin:/bin HOME=" + c.dir}
	for _, line := range o.Config {
		if strings.Contains(line, " PATH=") {
			config[0] = strings.Replace(line, " PATH=", " PATH="+c.dir+":", 1)
		} else {
			config = append(config, line)
		}
	}
	o.Config = config
	return o
}

// Home is a folder for whoever logs in.
func (c Clock) Home() string { return c.dir }

// Set has it jump.
func (c Clock) Set(off time.Duration) {
	c.t.Helper()
	c.write("off.new", fmt.Sprintf("%d\n", int64(off/time.Second)), 0o644)
	if err := os.Rename(filepath.Join(c.dir, "off.new"), c.File()); err != nil {
		c.t.Fatal(err)
	}
}

// File returns the file that makes the clock jump by the seconds in it.
func (c Clock) File() string { return filepath.Join(c.dir, "off") }

// Asked returns how often programs have asked for the time.
func (c Clock) Asked() int {
	text, err := os.ReadFile(filepath.Join(c.dir, "asked"))
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

func (c Clock) write(name, text string, mode os.FileMode) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), mode); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(c.dir, name), mode); err != nil {
		c.t.Fatal(err)
	}
}
