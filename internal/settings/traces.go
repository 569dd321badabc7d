package settings

import (
	"errors"
	"time"

	"muster/history"
	"muster/server/traces"
)

// Traces says where traces of tasks and jobs go.
type Traces struct {
	Endpoint    string        `mapstructure:"endpoint"` // URL of a collector; empty: no traces
	HeadersFile string        `mapstructure:"headers_file"`
	OneIn       int           `mapstructure:"one_in"` // of the tasks whose jobs end well
	Timeout     time.Duration `mapstructure:"timeout"`
	TLS         struct {
		CA   string `mapstructure:"ca"`
		Cert string `mapstructure:"cert"`
		Key  string `mapstructure:"key"`
	} `mapstructure:"tls"`
}

// traceDefaults returns the defaults of Traces.
func traceDefaults() map[string]any {
	return map[string]any{
		"traces.endpoint":     "",
		"traces.headers_file": "",
		"traces.one_in":       traces.DefaultOneIn,
		"traces.timeout":      traces.DefaultTimeout,
		"traces.tls.ca":       "",
		"traces.tls.cert":     "",
		"traces.tls.key":      "",
	}
}

// Config is the configuration of the room that sends them.
func (t Traces) Config() traces.Config {
	c := traces.Config{Endpoint: t.Endpoint, OneIn: t.OneIn, Timeout: t.Timeout, CA: t.TLS.CA,
		Cert: t.TLS.Cert, Key: t.TLS.Key}
	if t.HeadersFile != "" {
		c.Headers = t.headers()
	}
	return c
}

// headersMax bounds the file with the headers.
const headersMax = 16 << 10 // bytes

// headers returns the function that reads the headers. A changed file is in force at once.
func (t Traces) headers() func() (traces.Header, error) {
	w := watched[traces.Header]{setting: "traces.headers_file", path: t.HeadersFile, max: headersMax,
		bad: 0o077, parse: func(data []byte) (traces.Header, error) {
			return traces.ParseHeaders(t.HeadersFile, data)
		}}
	return w.get
}

// check reads the files once: what is wrong with them is better known at the start.
func (t Traces) check() error {
	if t.Endpoint == "" {
		return nil
	}
	c := t.Config()
	err := c.CheckFiles()
	if c.Headers != nil {
		_, wrong := c.Headers()
		err = errors.Join(err, wrong)
	}
	return err
}

// checkTraces reports mistakes in the settings of traces while traces.endpoint is empty, and
// refuses an endpoint without a history. The configuration of a server reports all others.
func (p Past) checkTraces() error {
	switch {
	case p.Traces.Endpoint == "":
		return p.Traces.Config().Validate()
	case p.History.URL == history.None:
		return errors.New("traces.endpoint is set, and history.url = none: traces are " +
			"made of what history stores: set history.url, or leave traces.endpoint out")
	}
	return nil
}
