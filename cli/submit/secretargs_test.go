package submit

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"muster/cli"
	"muster/testkit/apitest"
)

func TestSecretsAreTakenFromFilesAndPersonsOnly(t *testing.T) {
	t.Parallel()
	const books = `{"runbooks":[{"name":"db","arguments":[{"name":"password","type":"secret"},
		{"name":"text","type":"string"}]}]}`
	read := func(path string) ([]byte, error) {
		if path == "none" {
			return nil, errors.New("no such file")
		}
		return []byte("of " + path + "\nsecond\n"), nil
	}
	typed := func(_ context.Context, name string) (string, error) { return "typed " + name, nil }
	for _, c := range []struct {
		name string
		args []string
		ask  keyhole
		want string // "NAME=TEXT", or a part of the error
		left string
		asks int // number of questions to the server
	}{
		{"a file", []string{"password=@f", "text=@x"}, nil, "password=of f\nsecond", "text=@x", 1},
		{"standard input", []string{"password=@-"}, nil, "password=of -\nsecond", "", 1},
		{"a file, though somebody could be asked", []string{"password=@f"}, typed, "password=of f\nsecond", "", 1},
		{"a person", []string{"text=a"}, typed, "password=typed password", "text=a", 1},
		{"a text", []string{"password=hunter2"}, typed, "! --arg password: it is secret", "", 1},
		{"a reference", []string{"password=ref:cred:x", "text=ref:y"}, typed, "", "password=ref:cred:x,text=ref:y", 1},
		{"twice", []string{"password=@f", "password=@f"}, nil, "! given already", "", 1},
		{"no file", []string{"password=@none"}, nil, "! --arg password: no such file", "", 1},
		{"nothing to ask for", []string{"password=hunter2"}, nil, "", "password=hunter2", 0}, // the server refuses it
	} {
		api := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/runbooks": apitest.Answer(books)})
		cl, err := cli.NewClient(api.URL, "")
		if err != nil {
			t.Fatal(err)
		}
		f := RunFlags{Args: c.args}
		got, err := f.TakeSecrets(t.Context(), cl, "db", c.ask, read)
		text := ""
		for name, one := range got {
			text += name + "=" + one
		}
		if err != nil {
			text = "! " + err.Error()
		}
		good := text == c.want
		if part, bad := strings.CutPrefix(c.want, "! "); bad {
			good = err != nil && strings.Contains(text, part) && !strings.Contains(text, "hunter2")
		}
		if left := strings.Join(f.Args, ","); !good || err == nil && left != c.left || len(api.Requests()) != c.asks {
			t.Errorf("%s: %q, left %q, asked %q; want %q, %q, %d", c.name, text, left, api.Requests(), c.want,
				c.left, c.asks)
		}
	}
}
