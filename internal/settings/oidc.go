package settings

import (
	"errors"
	"strings"

	"muster/server/idp"
)

// OIDC says which identity provider the server asks.
type OIDC struct {
	Issuer   string   `mapstructure:"issuer"` // URL; empty: none
	ClientID string   `mapstructure:"client_id"`
	Secret   string   `mapstructure:"client_secret_file"`
	Claim    string   `mapstructure:"groups_claim"`
	Groups   []string `mapstructure:"groups"` // NAME=group:NAME
	Device   bool     `mapstructure:"device"` // logins by the device grant
}

// secretMax bounds the file with the secret of a client.
const secretMax = 4 << 10 // bytes

// config is the configuration of the room that asks the provider.
func (o OIDC) config() idp.Config {
	return idp.Config{Issuer: o.Issuer, ClientID: o.ClientID, Secret: o.secret(), GroupsClaim: o.Claim,
		Groups: o.Groups, Device: o.Device}
}

// secret returns the function that reads the secret of the client. A changed file is in force at
// once.
func (o OIDC) secret() func() (string, error) {
	w := watched[string]{setting: "server.oidc.client_secret_file", path: o.Secret, max: secretMax,
		bad: 0o077, parse: func(data []byte) (string, error) {
			text := strings.TrimSpace(string(data))
			if text == "" || strings.ContainsAny(text, "\n\x00") {
				return "", errors.New("server.oidc.client_secret_file: " + o.Secret + ": want one line, the " +
					"secret that the identity provider has given to this client")
			}
			return text, nil
		}}
	return w.get
}

// check reads the file once: what is wrong with it is better known at the start.
func (o OIDC) check() error {
	if o.Issuer == "" {
		return nil
	}
	if o.Secret == "" {
		return errors.New("server.oidc.client_secret_file: want the file with the secret that the " +
			"identity provider has given to this client")
	}
	_, err := o.secret()()
	return err
}
