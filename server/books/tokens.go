package books

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/fleet"
	"muster/jobs/queue"
	"muster/server/web"
)

type (
	tokenInput struct {
		web.Whose
		Body api.TokenRequest
	}
	tokenOutput  struct{ Body api.TokenAnswer }
	tokensOutput struct{ Body api.TokenList }
	tokenName    struct {
		web.Whose
		Name string `path:"name"`
	}
)

// TokenRoutes makes, lists and removes tokens.
type TokenRoutes struct {
	Kept Tokens
	Log  hclog.Logger
}

// Routes registers the routes of the resource.
func (s TokenRoutes) Routes(api huma.API) {
	add := web.Post("/v1/tokens", "Make a token")
	add.DefaultStatus = http.StatusCreated
	huma.Register(api, add, s.addToken)
	huma.Register(api, web.Get("/v1/tokens", "List tokens"), s.tokens)
	huma.Register(api, web.Delete("/v1/tokens/{name}", "Remove a token"), s.removeToken)
}

// tokenPrefix lets people and scanners recognise a lost token.
const tokenPrefix = "muster_"

// tokenBytes is the number of random bytes in a token. Nobody can guess so many, so a plain hash of
// them can be kept.
const tokenBytes = 32

// addToken makes a token. The guard lets in only users of this machine and owners of a token.
func (s TokenRoutes) addToken(ctx context.Context, in *tokenInput) (*tokenOutput, error) {
	if err := fleet.CheckName(in.Body.Name); err != nil {
		return nil, web.Refusal(web.Mistakes("body.name", err))
	}
	chance := make([]byte, tokenBytes)
	rand.Read(chance) // never fails
	secret := tokenPrefix + base64.RawURLEncoding.EncodeToString(chance)
	if err := s.Kept.CreateToken(ctx, in.Body.Name, secret); err != nil {
		return nil, web.Problem(err)
	}
	in.Note(s.Log, "token created", "name", in.Body.Name)
	return &tokenOutput{api.TokenAnswer{Name: in.Body.Name, Token: secret}}, nil
}

func (s TokenRoutes) tokens(ctx context.Context, _ *web.Nothing) (*tokensOutput, error) {
	list, err := s.Kept.Tokens(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	out := &tokensOutput{api.TokenList{Tokens: make([]api.TokenInfo, 0, len(list))}}
	for _, t := range list {
		out.Body.Tokens = append(out.Body.Tokens, api.TokenInfo(t))
	}
	return out, nil
}

func (s TokenRoutes) removeToken(ctx context.Context, in *tokenName) (*struct{}, error) {
	err := s.Kept.RemoveToken(ctx, in.Name)
	if errors.Is(err, queue.ErrNotFound) {
		return nil, huma.Error404NotFound(fmt.Sprintf("there is no token %q; `muster token ls` "+
			"lists them", web.Clip(in.Name)))
	}
	if err != nil {
		return nil, web.Problem(err)
	}
	in.Note(s.Log, "token removed", "name", in.Name)
	return nil, nil
}
