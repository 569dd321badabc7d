// Package certs reads certificates and their keys from files in PEM.
//
// Floor 1: may import internal/files.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"muster/internal/files"
)

// pemMax bounds a file of certificates or a key.
const pemMax = 4 << 20 // bytes

// Pool reads authorities.
func Pool(path string) (*x509.CertPool, error) {
	text, err := files.Read(path, pemMax)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", path)
	}
	return pool, nil
}

// Pair reads a certificate and its key.
func Pair(cert, key string) (tls.Certificate, error) {
	chain, err := files.Read(cert, pemMax)
	if err != nil {
		return tls.Certificate{}, err
	}
	secret, err := files.Read(key, pemMax)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(chain, secret)
}

// Client names files for the way of a client to a server. Errors name the variables that have them.
type Client struct {
	Cert, Key string // by which the server knows the caller; empty: none
	CA        string // authorities of the server's certificate; empty: those of the system
}

// Config reads the files of a client that calls the server at a URL; nil: it names none. The error
// has every mistake.
func (c Client) Config(server string) (*tls.Config, error) {
	if c == (Client{}) {
		return nil, nil
	}
	if !strings.HasPrefix(server, "https://") {
		return nil, fmt.Errorf("MUSTER_CLIENT_CERT, MUSTER_CLIENT_KEY and MUSTER_CA are for https://, "+
			"and the server is %s: unset them, or set MUSTER_URL", server)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	var wrong, bad error
	if c.CA != "" {
		config.RootCAs, wrong = Pool(c.CA)
	}
	if c.Cert != "" || c.Key != "" {
		var pair tls.Certificate
		pair, bad = c.own()
		config.Certificates = []tls.Certificate{pair}
	}
	return config, errors.Join(located("MUSTER_CA", wrong),
		located("MUSTER_CLIENT_CERT, MUSTER_CLIENT_KEY", bad))
}

// own reads the caller's certificate and its key, which only its owner may be able to read.
func (c Client) own() (tls.Certificate, error) {
	if c.Cert == "" || c.Key == "" {
		return tls.Certificate{}, errors.New("want both or none")
	}
	_, mode, err := files.Private(c.Key, pemMax)
	if err == nil && mode.Perm()&0o077 != 0 {
		err = fmt.Errorf("%s has mode %04o, so others can use it: chmod 400 %s", c.Key, mode.Perm(),
			c.Key)
	}
	if err != nil {
		return tls.Certificate{}, err
	}
	return Pair(c.Cert, c.Key)
}

// located puts the names of variables before an error.
func located(names string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", names, err)
}
