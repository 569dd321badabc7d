package cli

import (
	"regexp"
	"slices"

	"github.com/spf13/cobra"
)

// lastHosts is the operand of a selector that means hosts of the last task, as in
// task:last/failed. The server knows tasks by their ids alone: which one is the last only who
// asks can say.
var lastHosts = regexp.MustCompile(`(^|[,!&^( ])task:` + NewestWord + `($|[/,!&^() ])`)

// namesHosts is the form of a command that takes a selector of hosts.
var namesHosts = regexp.MustCompile(`\bSELECTOR\b`)

// selectors are the places of a command line where a selector may stand: arguments, but not
// what follows two dashes, and the flag --on. What visit returns takes the place of a text.
func selectors(c *cobra.Command, args []string, visit func(text string) (string, error)) (
	[]string, error) {
	if !namesHosts.MatchString(c.Use) {
		return args, nil
	}
	args = slices.Clone(args)
	for i := range args {
		if at := c.ArgsLenAtDash(); at >= 0 && i >= at {
			break // a command of the hosts
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
