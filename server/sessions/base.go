package sessions

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"muster/internal/loopback"
)

// CheckURL returns an error unless browsers can reach a server at a URL.
func CheckURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "",
		strings.Trim(u.Path, "/") != "":
	case u.Scheme == "https", u.Scheme == "http" && loopback.Host(u.Hostname()):
		return nil
	}
	return fmt.Errorf("server.url = %q: want https:// and the name by which browsers reach this "+
		"server, such as https://muster.example:7070", text)
}

// A Site is where a server listens.
type Site struct {
	URL       string // for browsers, as the configuration has it; empty: it has none
	TLS       bool
	Wanted    string // the places of the configuration, between commas
	Listening string // the places of its sockets
}

// Base returns what begins the URLs of the server for browsers.
func (s Site) Base() (string, error) {
	if s.URL != "" {
		return strings.TrimRight(s.URL, "/"), nil
	}
	tcp := false
	for place := range strings.SplitSeq(s.Listening, ",") {
		host, _, err := net.SplitHostPort(place)
		if err != nil || strings.HasPrefix(place, "unix:") {
			continue
		}
		tcp = true
		if !s.TLS && loopback.Host(host) {
			return "http://" + place, nil
		}
	}
	// The address of a socket is an IP address, and few certificates have one: the name that the
	// configuration has is better.
	for place := range strings.SplitSeq(s.Wanted, ",") {
		place = strings.TrimSpace(place)
		host, _, err := net.SplitHostPort(place)
		_, number := netip.ParseAddr(host)
		if err == nil && s.TLS && host != "" && number != nil && !strings.HasPrefix(place, "unix:") {
			return "https://" + place, nil
		}
	}
	if !tcp {
		return "", errors.New("a browser cannot reach this server, because it listens on a unix socket " +
			"only: add a port to server.listen, such as 127.0.0.1:7070")
	}
	return "", errors.New("this server does not know the name by which browsers reach it: set " +
		"server.url, such as https://muster.example:7070")
}
