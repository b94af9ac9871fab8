package compile

import (
	"slices"

	"medusa/graphir"
	"medusa/materialize/recording"
)

// variableNumbers number the variables of both runs alike, by module and name.
type variableNumbers map[moduleVariable]uint32

// moduleVariable is known by the identity of its module, and by name.
type moduleVariable struct{ module, name string }

func numberVariables(runs ...*recording.Recording) variableNumbers {
	numbers := variableNumbers{}
	for _, r := range runs {
		for _, g := range r.Globals {
			key := moduleVariable{r.Modules[g.Module].IdentityKey(), g.Name}
			if _, found := numbers[key]; !found {
				numbers[key] = uint32(len(numbers))
			}
		}
	}
	return numbers
}

// of returns the variables of a recording with their numbers, and their places by number, or -1.
func (numbers variableNumbers) of(r *recording.Recording) (variables []variable, byNumber []int) {
	loaded := map[string]int{}
	for _, m := range r.Modules {
		if m.Unloaded == recording.NoOrder {
			loaded[m.IdentityKey()]++
		}
	}
	byNumber = slices.Repeat([]int{-1}, len(numbers))
	for i, g := range r.Globals {
		key := moduleVariable{r.Modules[g.Module].IdentityKey(), g.Name}
		g.ID = numbers[key]
		byNumber[g.ID] = i
		// mutant: image loaded twice
		variables = append(variables, variable{g, loaded[key.module] > 1})
	}
	return variables, byNumber
}

// compileVariables lists record-a's variables, by number.
func compileVariables(kernels *kernelTable, a *run) []graphir.Global {
	var out []graphir.Global
	for _, v := range a.variables {
		if int(v.ID) == len(out) { // the first with this number
			out = append(out, graphir.Global{Module: kernels.module(a.Modules[v.Module]), Name: v.Name, Size: v.Size})
		}
	}
	return out
}
