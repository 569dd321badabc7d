package idp

import (
	"context"
	"errors"
	"time"

	"golang.org/x/oauth2"

	"muster/internal/wording"
)

// A Device is a login that a person confirms with a browser on another machine.
type Device struct {
	Code     string    `json:"code"` // by which the server asks whether the person has confirmed
	User     string    `json:"user"` // that the person types
	At       string    `json:"at"`   // URL where
	Whole    string    `json:"whole,omitempty"`
	Until    time.Time `json:"until"`
	Interval int       `json:"interval"` // seconds between two questions
}

// errNoDevice is the refusal of a login by device where there is none.
var errNoDevice = &Refusal{Denied, "this server takes no logins by the device grant: " +
	"server.oidc.device allows them; or log in on a machine with a browser"}

const grantDevice = "urn:ietf:params:oauth:grant-type:device_code"

// BeginDevice begins a login by device.
func (p *Provider) BeginDevice(ctx context.Context) (Device, error) {
	if !p.cfg.Device {
		return Device{}, errNoDevice
	}
	f, err := p.find(ctx)
	if err != nil {
		return Device{}, err
	}
	c, err := p.client(f)
	if err != nil {
		return Device{}, err
	}
	if c.Endpoint.DeviceAuthURL == "" {
		return Device{}, &Refusal{Denied, "the identity provider knows no device grant: log in on a " +
			"machine with a browser"}
	}
	d, err := c.DeviceAuth(p.asking(ctx), oauth2.SetAuthURLParam("client_secret", c.ClientSecret))
	if err != nil {
		return Device{}, exchangeError(err)
	}
	if checkIssuer(d.VerificationURI) != nil {
		return Device{}, untrue("the provider names %q as the page for the code", wording.Clip(
			d.VerificationURI))
	}
	return Device{d.DeviceCode, d.UserCode, d.VerificationURI, d.VerificationURIComplete, d.Expiry,
		int(max(d.Interval, 5))}, nil
}

// Pending says that the person has not confirmed yet.
type Pending struct{ Slower bool } // whether the questions come too often

// Error is a sentence.
func (p *Pending) Error() string { return "nobody has confirmed the login yet" }

// FinishDevice asks once whether a person has confirmed a login by device. The error is a *Pending,
// a *Refusal, or the provider cannot be asked now.
func (p *Provider) FinishDevice(ctx context.Context, d Device) (Person, error) {
	if !p.cfg.Device {
		return Person{}, errNoDevice
	}
	f, err := p.find(ctx)
	if err != nil {
		return Person{}, err
	}
	c, err := p.client(f)
	if err != nil {
		return Person{}, err
	}
	t, err := c.Exchange(p.asking(ctx), "", oauth2.SetAuthURLParam("grant_type", grantDevice),
		oauth2.SetAuthURLParam("device_code", d.Code))
	var no *oauth2.RetrieveError
	switch {
	case errors.As(err, &no) && no.ErrorCode == "authorization_pending":
		return Person{}, &Pending{}
	case errors.As(err, &no) && no.ErrorCode == "slow_down":
		return Person{}, &Pending{Slower: true}
	case err != nil:
		return Person{}, exchangeError(err)
	}
	return p.person(ctx, f, t, "")
}
