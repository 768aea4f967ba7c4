package owned

// Admitted has the fields that nobody may change after the creation of an object, and that the API server stored with another value than
// the desired one, such as a node selector that admission has extended. An apply sends these fields with their live values. Both trees
// are decoded JSON.
type Admitted struct {
	Values map[string]any // the live values
	Wish   map[string]any // what was desired when these fields were found; a field counts only while its desired value is still the same
}
