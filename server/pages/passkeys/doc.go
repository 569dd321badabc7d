// Package passkeys has the pages on which people make a passkey, sign the order of a task with one,
// and take a signature back. The browser and its authenticator make the signature; nodes check it
// as they check those of OpenSSH.
//
// Floor 6: may import server/pages/frame and what is below it, internal/sshsig and trust.
package passkeys

import "muster/server/pages/frame"

// Content returns the pages.
func Content() frame.Content {
	return frame.Content{
		Views:   map[string]frame.View{"/passkeys": thePasskeys},
		Answers: map[string]frame.Answer{"POST /passkeys": showLine},
		Orders: map[string]frame.Planner{"/approvals/{task}/order/sign": sign,
			"/approvals/{task}/order/withdraw": withdraw},
	}
}
