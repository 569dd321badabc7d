package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// completionTimeout bounds completions that ask the server; if it is away they offer nothing. A
// shell that waits or prints errors is worse than no completion.
const completionTimeout = time.Second

// NoFiles keeps the shell from offering names of files.
const NoFiles = cobra.ShellCompDirectiveNoFileComp

// CompleteFlag completes a flag from a fixed list.
func CompleteFlag(c *cobra.Command, flag string, values ...string) {
	CompleteFlagWith(c, flag, cobra.FixedCompletions(values, NoFiles))
}

// CompleteFlagWith completes a flag by a function. A missing flag is a mistake in this program, and
// a test finds it.
func CompleteFlagWith(c *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}

// AskServer calls the server that the flags name.
func AskServer[T any](c *cobra.Command, f func(context.Context, *Client) (T, error)) (T, bool) {
	var none T
	flags := Flags{output: OutputTable, server: c.Flag("server").Value.String()}
	s, err := flags.open(c)
	if err != nil {
		return none, false
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	v, err := f(ctx, s.Client)
	return v, err == nil
}
