package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// This file translates errors of the network and of the SSH library to kinds, and to texts
// that say what is wrong and what to do.

// explainDial explains why there is no network connection.
func explainDial(err error, limit time.Duration) (Kind, error) {
	var errno syscall.Errno
	var dns *net.DNSError
	switch {
	case errors.As(err, &errno) && ourShortage(errno):
		return KindNode, fmt.Errorf("this node cannot open a connection: %w", errno)
	case errors.Is(err, syscall.ECONNREFUSED):
		return KindUnreachable, fmt.Errorf("%w: does sshd run there, is the port right?",
			syscall.ECONNREFUSED)
	case errors.Is(err, syscall.ECONNRESET):
		return explainGreeting(syscall.ECONNRESET, nil, limit)
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return KindUnreachable, fmt.Errorf("no answer to TCP within %s", limit)
	case errors.As(err, &dns):
		return KindUnreachable, fmt.Errorf("name of the host: %w", dns)
	case errors.As(err, &errno):
		return KindUnreachable, errno
	}
	return KindUnreachable, err
}

// ourShortage reports whether the error is a shortage on this node, not a fault of the host.
func ourShortage(errno syscall.Errno) bool {
	switch errno {
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL:
		return true
	}
	return false
}

// explain explains why there is a network connection but no login.
func (h *handshake) explain(err error) (Kind, error) {
	var wrongKey *hostKeyError
	if errors.As(err, &wrongKey) {
		return KindHostKey, wrongKey
	}
	var mismatch *ssh.AlgorithmNegotiationError
	if errors.As(err, &mismatch) {
		return h.explainMismatch(mismatch)
	}
	heard := h.wire.heard()
	switch {
	case h.loggingIn.Load():
		return h.explainLogin(err)
	case !bytes.Contains(heard, []byte("SSH-")):
		return explainGreeting(err, heard, h.cfg.Handshake)
	case isTimeout(err):
		return KindUnreachable, fmt.Errorf("key exchange not finished within %s of connecting",
			h.cfg.Handshake)
	}
	return KindUnreachable, fmt.Errorf("key exchange: %w", bare(err))
}

// explainMismatch explains that the host and we have no common algorithm. If the host key
// algorithm is missing, the host has keys, but none of a type that we know.
func (h *handshake) explainMismatch(err *ssh.AlgorithmNegotiationError) (Kind, error) {
	if err.What == "host key" {
		return KindHostKey, fmt.Errorf("it offers host keys only for %q, the inventory has %s: the "+
			"connection was refused; put one of its keys into the inventory%s",
			err.RequestedAlgorithms, h.known.types(), h.known.advice(err.RequestedAlgorithms))
	}
	return KindRefused, fmt.Errorf("no common algorithm for %s: it offers %q, we accept %q%s",
		err.What, err.RequestedAlgorithms, err.SupportedAlgorithms,
		h.suite.advice(err.RequestedAlgorithms))
}

// explainGreeting explains that a peer did not even announce SSH. An overloaded sshd drops a
// connection silently, or with one line of plain text.
func explainGreeting(err error, heard []byte, limit time.Duration) (Kind, error) {
	said := "nothing"
	if len(heard) > 0 {
		line, _, _ := bytes.Cut(heard, []byte("\n"))
		said = Quote(line, saidMax)
	}
	switch {
	case bytes.Contains(heard, []byte("MaxStartups")), bytes.Contains(heard, []byte("Not allowed")),
		len(heard) == 0 && isEnd(err):
		return KindThrottled, fmt.Errorf("it accepted the connection and dropped it, saying %s: too "+
			"many connections at once (MaxStartups), or a penalty", said)
	case isTimeout(err):
		return KindUnreachable, fmt.Errorf("no SSH greeting within %s of connecting, it said %s",
			limit, said)
	}
	return KindUnreachable, fmt.Errorf("no SSH greeting, is it the right port? It said %s: %w",
		said, bare(err))
}

// explainLogin explains a failure after the host has proved its identity.
func (h *handshake) explainLogin(err error) (Kind, error) {
	switch {
	case isTimeout(err):
		return KindUnreachable, fmt.Errorf("login not finished within %s", h.cfg.Auth)
	case isEnd(err):
		return KindUnreachable, fmt.Errorf("connection ended during login: %w", bare(err))
	}
	return KindAuth, fmt.Errorf("login as %q with %s was refused: put the public key into that "+
		"user's authorized_keys on the host (%w)", h.login.user, h.login.what, err)
}

// bare removes the addresses from an error of the network: they are known, and our random
// port would make equal errors of two hosts look different.
func bare(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, end) {
			return end
		}
	}
	return err
}

// isTimeout reports whether one of our deadlines has passed.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// isEnd reports whether either side ended the connection.
func isEnd(err error) bool {
	var errno syscall.Errno
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed} {
		if errors.Is(err, end) {
			return true
		}
	}
	return errors.As(err, &errno)
}
