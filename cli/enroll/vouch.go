package enroll

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"muster/cli"
)

// ask puts a question to the person at the terminal, and returns the answer.
type ask func(ctx context.Context, question string) (string, error)

// newAsker asks at the terminal; nil if there is no person.
func newAsker(s *cli.Screen) ask {
	if !s.ErrTerm || s.JSON || !term.IsTerminal(int(os.Stdin.Fd())) {
		return nil
	}
	return func(ctx context.Context, question string) (string, error) {
		fmt.Fprint(s.Err, question)
		line := make(chan string, 1)
		go func() {
			text, _ := bufio.NewReader(os.Stdin).ReadString('\n') // an empty input is no yes
			line <- text
		}()
		select {
		case text := <-line:
			return text, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// unvouched counts the keys that would be written and that nobody has compared yet. Known keys were
// compared, and an authority vouches for its own.
func unvouched(list []enrolled, replace bool) (n int) {
	for _, e := range list {
		for _, k := range e.Keys {
			isNew := k.State == keyNew || k.State == keyChanged && replace
			if isNew && k.Certifies == nil && (!k.inFile || k.State == keyChanged) {
				n++
			}
		}
	}
	return n
}

// vouchFor makes a person compare keys before they are trusted: it shows them and asks. It reports
// whether it has shown them. Without a terminal only --yes writes.
func vouchFor(ctx context.Context, s *cli.Screen, list []enrolled, f enrollFlags, question ask) (
	shown bool, err error) {
	n := unvouched(list, f.replace)
	if n == 0 || f.yes {
		return false, nil
	}
	if s.JSON {
		err = s.WriteJSON(list)
	} else {
		err = s.Write(enrolledText(list, f.form))
	}
	switch {
	case err != nil:
		return true, err
	case question == nil:
		return true, cli.Exit(cli.ExitUsage, fmt.Errorf(
			"%s not written: compare the fingerprints with what "+
				"the hosts' consoles say, and give --yes then", cli.Count(n, "new key")))
	}
	answer, err := question(ctx, fmt.Sprintf("Compare the fingerprints with what the hosts' "+
		"consoles say. Write %s to %s? [y/N] ", cli.Count(n, "new key"), f.write))
	if err != nil {
		return true, err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	return true, cli.Exit(cli.ExitNotAll, errors.New("nothing was written"))
}
