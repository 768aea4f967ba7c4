package owned

// Admitted is what the API server has made of an object when the object was created, such as a node selector that admission has extended,
// in fields that nobody may change afterwards. An apply sends these fields as they are live. Both trees are decoded JSON.
type Admitted struct {
	Values map[string]any // the live values
	Wish   map[string]any // what was desired when these fields were found: a field counts only as long as it is desired in the same way
}
