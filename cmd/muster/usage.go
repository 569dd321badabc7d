package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// plainUsage makes what cobra and the standard library say of wrong use tell what was
// expected: for all commands below c, too.
func plainUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error { return argsError(c, check(c, args)) }
	}
	c.SetFlagErrorFunc(flagError)
	for _, sub := range c.Commands() {
		plainUsage(sub)
	}
}

// argsError is about the number of arguments; other errors have words of their own.
func argsError(c *cobra.Command, err error) error {
	if err == nil || !strings.HasPrefix(err.Error(), "accepts ") &&
		!strings.HasPrefix(err.Error(), "requires ") {
		return err
	}
	return fmt.Errorf("want %s: it %w", strings.TrimSuffix(c.UseLine(), " [flags]"), err)
}

// flagError is about a flag that is not there, or whose value cannot be read.
func flagError(c *cobra.Command, err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "invalid duration"):
		return fmt.Errorf("%w: want a time such as 90s, 30m or 2h", err)
	case strings.Contains(text, "strconv.ParseInt"):
		return fmt.Errorf("%w: want a whole number", err)
	case strings.Contains(text, "strconv.ParseBool"):
		return fmt.Errorf("%w: want true or false", err)
	}
	return err
}
