// Package sdnotify tells systemd how a service is: that it serves, reloads, stops, and still lives
// (sd_notify(3), Type=notify). Without a systemd that asked for it, it does nothing.
//
// Floor 0: may import the standard library.
package sdnotify

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Unit is this process as systemd knows it. A nil Unit tells nobody.
type Unit struct {
	socket   string
	watchdog time.Duration

	mu     sync.Mutex
	status string // the last one
}

// Environment holds the variables that systemd sets for a service.
type Environment struct {
	Socket       string // NOTIFY_SOCKET; empty: systemd asked for nothing
	WatchdogUsec string // WATCHDOG_USEC
	WatchdogPID  string // WATCHDOG_PID: the process that the watchdog watches; empty: this one
	PID          int    // of this process
}

// New returns the unit that an environment names; nil if there is none.
func New(e Environment) *Unit {
	if e.Socket == "" {
		return nil
	}
	u := &Unit{socket: e.Socket}
	usec, err := strconv.ParseInt(e.WatchdogUsec, 10, 64)
	if err == nil && usec > 0 && (e.WatchdogPID == "" || e.WatchdogPID == strconv.Itoa(e.PID)) {
		u.watchdog = time.Duration(usec) * time.Microsecond
	}
	return u
}

// Watchdog returns the time after which systemd kills a service that has not said that it lives;
// 0: never.
func (u *Unit) Watchdog() time.Duration {
	if u == nil {
		return 0
	}
	return u.watchdog
}

// Ready says that the service serves, also after a reload.
func (u *Unit) Ready() error { return u.say("READY=1") }

// Reloading says that the service reads its configuration again; Ready ends that.
func (u *Unit) Reloading() error { return u.say("RELOADING=1") }

// Stopping says that the service ends.
func (u *Unit) Stopping(status string) error { return u.say("STOPPING=1", "STATUS="+line(status)) }

// Alive says that the service lives. Call it only when something has shown that.
func (u *Unit) Alive() error { return u.say("WATCHDOG=1") }

// Status shows a line in systemctl status, if it is not the last one.
func (u *Unit) Status(status string) error {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	same := u.status == status
	u.status = status
	u.mu.Unlock()
	if same {
		return nil
	}
	return u.say("STATUS=" + line(status))
}

// line keeps a text on one line, because a line is an assignment.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }

func (u *Unit) say(lines ...string) error {
	if u == nil {
		return nil
	}
	// A name that begins with @ is in the abstract name space; package net knows that.
	c, err := net.Dial("unixgram", u.socket)
	if err != nil {
		return fmt.Errorf("systemd: %w", err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(strings.Join(lines, "\n"))); err != nil {
		return fmt.Errorf("systemd: %w", err)
	}
	return nil
}
