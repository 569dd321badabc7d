package bundle

import (
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strings"
	"time"

	"muster/cli/doctor"
	"muster/fleet"
	"muster/internal/files"
	"muster/internal/settings"
)

// How a text of the configuration is shown. A key without a row is only said to be set.
type how int

const (
	setOnly how = iota // only whether it is set
	whole              // as it is: names, paths
	place              // a URL without user, password and query
	origin             // only the scheme and the host of a URL: its path may be a secret
	program            // a place; of a command only the program, because arguments may be secrets
	zoned              // a zone, and the place of its server
)

// shown has a row for each key with texts. Numbers, times and switches are always shown.
var shown = map[string]how{
	"redis.url": place, "redis.username": whole, "redis.password": setOnly,
	"redis.password_file": whole, "redis.sentinel.master": whole,
	"redis.sentinel.addresses": whole, "redis.sentinel.username": whole,
	"redis.sentinel.password": setOnly, "redis.sentinel.password_file": whole,
	"redis.cluster.addresses": whole, "redis.zones": zoned, "redis.tls.ca": whole,
	"redis.tls.cert": whole, "redis.tls.key": whole, "redis.tls.server_name": whole,

	"server.listen": whole, "server.socket_group": whole, "server.url": place, "server.key": whole,
	"server.access": whole, "server.notify": whole, "server.triggers": whole,
	"server.events": whole, "server.repositories": whole,
	"server.tls.cert": whole, "server.tls.key": whole, "server.tls.client_ca": whole,
	"server.oidc.issuer": place, "server.oidc.client_id": whole,
	"server.oidc.client_secret_file": whole, "server.oidc.groups_claim": whole,
	"server.oidc.groups": whole,

	"master.zones": whole, "master.standby": whole, "node.name": whole, "node.dir": whole,
	"node.playbooks": whole, "overload.fair_by": whole, "ssh.agent": whole,
	"ssh.passphrase_file": whole, "ssh.record_dir": whole, "log.level": whole, "log.format": whole,
	"inventory": program, "known_hosts": whole, "runbooks": whole,

	"history.url": place, "history.password_file": whole, "audit.dir": whole,
	"audit.sinks": origin, "audit.webhook_key": whole, "audit.webhook_ca": whole,
	"secrets.key": whole, "secrets.references": whole, "trust.dir": whole,
}

// configurationOf returns the values of the configuration by their keys, without secrets.
func configurationOf(s settings.Settings) map[string]any {
	out := map[string]any{}
	flatten(reflect.ValueOf(s), "", out)
	return out
}

func flatten(v reflect.Value, prefix string, out map[string]any) {
	for i := range v.NumField() {
		name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("mapstructure"), ",")
		field := v.Field(i)
		switch _, span := field.Interface().(time.Duration); {
		case name == "-" || name == "" && option != "squash":
		case option == "squash":
			flatten(field, prefix, out)
		case span:
			out[prefix+name] = field.Interface().(time.Duration).String()
		case field.Kind() == reflect.Struct:
			flatten(field, prefix+name+".", out)
		default:
			out[prefix+name] = shownAs(shown[prefix+name], field.Interface())
		}
	}
}

// shownAs returns what is shown of a value.
func shownAs(h how, value any) any {
	switch value := value.(type) {
	case string:
		return shownText(h, value)
	case []string:
		out := make([]string, len(value))
		for i, text := range value {
			out[i] = shownText(h, text)
		}
		return out
	case bool, int, int64, float64:
		return value
	}
	return "(not shown)"
}

func shownText(h how, text string) string {
	if text == "" || h == whole {
		return text
	}
	if h == setOnly {
		return "(set)"
	}
	zone, rest, pair := strings.Cut(text, "=")
	switch {
	case h == zoned && pair && fleet.CheckZone(zone) == nil:
		return zone + "=" + shownText(place, rest)
	case h == zoned:
		return "(set, and no ZONE=URL)"
	}
	u, err := url.Parse(text)
	switch {
	case h == program && (err != nil || u.Host == ""):
		first, rest, more := strings.Cut(strings.TrimSpace(text), " ")
		if more && rest != "" {
			first += " (more, not shown)"
		}
		return first
	case err != nil:
		return "(set, and no URL)"
	case h == origin && u.Host != "":
		return u.Scheme + "://" + u.Host + "/ (path not shown)"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// secretMax bounds a file with a secret.
const secretMax = 1 << 20 // bytes

// named is a line of a configuration that names a secret.
var named = regexp.MustCompile(`(?im)^[^#\n]*(?:password|secret|token)["']?[ \t]*:[ \t]*(.+)$`)

// address is a URL with a user in a configuration.
var address = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"']+@[^\s"']*`)

// secretsIn returns the secrets in the text of a configuration, which may have mistakes.
func secretsIn(text string) (list []string) {
	for _, found := range named.FindAllStringSubmatch(text, -1) {
		list = append(list, strings.Trim(strings.TrimSpace(found[1]), `"'`))
	}
	for _, found := range address.FindAllString(text, -1) {
		list = append(list, secretsOfURL(found)...)
	}
	return list
}

// secretsOf returns the secrets that the configuration and its files hold, as far as they can be
// read here.
func secretsOf(path string, s settings.Settings) []string {
	list := []string{s.Redis.Login.Password, s.Redis.Sentinel.Login.Password}
	for _, text := range s.Redis.Zones {
		_, server, _ := strings.Cut(text, "=")
		list = append(append(list, secretsOfURL(text)...), secretsOfURL(server)...)
	}
	for _, text := range append([]string{s.Redis.URL, s.Past.History.URL, s.Server.URL,
		s.Server.OIDC.Issuer}, append(s.Hosts.Inventory, s.Past.Audit.Sinks...)...) {
		list = append(list, secretsOfURL(text)...)
	}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		for _, word := range []string{"PASSWORD", "TOKEN", "SECRET"} {
			if strings.Contains(strings.ToUpper(name), word) && !strings.HasSuffix(name, "_FILE") {
				list = append(list, value)
			}
		}
	}
	if text, err := files.Read(path, secretMax); err == nil {
		list = append(list, secretsIn(string(text))...)
	}
	for _, path := range doctor.SecretFiles(s) {
		if text, err := files.Read(path, secretMax); err == nil {
			list = append(list, string(text))
		}
	}
	return list
}

// secretsOfURL returns the password and the values of the query.
func secretsOfURL(text string) (list []string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" && u.User == nil {
		return nil
	}
	if password, has := u.User.Password(); has {
		list = append(list, password, url.QueryEscape(password), url.PathEscape(password))
	}
	for _, values := range u.Query() {
		list = append(list, values...)
	}
	return list
}
