package cli

import (
	"regexp"
	"slices"

	"github.com/spf13/cobra"
)

// lastHosts matches the operand of a selector that means hosts of the last task, as in
// task:last/failed. The server knows tasks by their ids only: the client decides which one is the
// last.
var lastHosts = regexp.MustCompile(`(^|[,!&^( ])task:` + NewestWord + `($|[/,!&^() ])`)

// namesHosts is the form of a command that takes a selector of hosts.
var namesHosts = regexp.MustCompile(`\bSELECTOR\b`)

// selectors calls visit for each text of a command line that may be a selector: arguments before
// two dashes, and the flag --on. The result of visit replaces the text.
func selectors(c *cobra.Command, args []string, visit func(text string) (string, error)) (
	[]string, error) {
	if !namesHosts.MatchString(c.Use) {
		return args, nil
	}
	args = slices.Clone(args)
	for i := range args {
		if at := c.ArgsLenAtDash(); at >= 0 && i >= at {
			break // the rest is a command for the hosts
		}
		var err error
		if args[i], err = visit(args[i]); err != nil {
			return nil, err
		}
	}
	if on := c.Flags().Lookup("on"); on != nil && on.Changed {
		text, err := visit(on.Value.String())
		if err != nil {
			return nil, err
		}
		return args, on.Value.Set(text)
	}
	return args, nil
}
