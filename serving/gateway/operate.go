package gateway

import (
	"fmt"
	"net/http"
	"strings"

	"medusa/internal/apierror"
	"medusa/serving/agent"
)

// unload stops the engines of a model.
func (g *Server) unload(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutSuffix(r.PathValue("rest"), "/unload")
	if !ok {
		unknownURL(w, r)
		return
	}
	now := g.setup.Load()
	place, ok := now.functions[name]
	if !ok {
		decline(w, r, apierror.OpenAI, noModel(name))
		return
	}
	apierror.WriteJSON(w, http.StatusOK, struct {
		Model   string `json:"model"`
		Engines int    `json:"engines"`
	}{now.models[place].Name, g.agent.Unload(place)})
}

// running lists the engines that have a process.
func (g *Server) running(w http.ResponseWriter, _ *http.Request) {
	type engine struct {
		Model    string      `json:"model"`
		GPU      string      `json:"gpu"`
		State    agent.State `json:"state"`
		Since    float64     `json:"since_s"` // seconds that it has had the state
		Requests int         `json:"requests"`
	}
	list := []engine{}
	for _, at := range g.report().GPUs {
		for _, e := range at.Engines {
			if e.State != agent.Failed {
				list = append(list, engine{e.Model, at.ID, e.State, g.clock() - e.Since, e.Requests})
			}
		}
	}
	apierror.WriteJSON(w, http.StatusOK, struct {
		Running []engine `json:"running"`
	}{list})
}

// preload starts the models that are to be there from the start.
func (g *Server) preload() {
	now := g.setup.Load()
	for place, m := range now.models {
		if m.Preload && !now.leaving(place) && !g.agent.Preload(place) {
			g.warn("preload %s: no GPU has room for it beside others; its first request starts it", m.Name)
		}
	}
}

// A model of OpenAI's list.
type listed struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (g *Server) models(w http.ResponseWriter, _ *http.Request) {
	list := []listed{}
	for _, m := range g.setup.Load().spec.Models {
		list = append(list, listed{m.Name, "model", g.created, "medusa"})
	}
	apierror.WriteJSON(w, http.StatusOK, struct {
		Object string   `json:"object"`
		Data   []listed `json:"data"`
	}{"list", list})
}

func (g *Server) oneModel(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if _, ok := g.setup.Load().functions[name]; !ok {
		decline(w, r, apierror.OpenAI, noModel(name))
		return
	}
	apierror.WriteJSON(w, http.StatusOK, listed{name, "model", g.created, "medusa"})
}

func noModel(name string) error {
	return &apierror.Error{Status: http.StatusNotFound, Kind: apierror.Request, Code: "model_not_found", Param: "model",
		Message: fmt.Sprintf("the model %q does not exist", name)}
}
