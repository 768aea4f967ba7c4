package main

import (
	"go/types"
	"strconv"
	"strings"
)

// pointerMethod precedes a method that only the pointer of a type has. If a later release adds the method to the value too, old code still
// compiles.
const pointerMethod = "pointer "

// description collects the exported API of a package: one line for each identifier that users' code can name. A line has the identifier and
// its declaration. Names of parameters are left out, type parameters are numbered, and aliases of this module are resolved, because none of
// these matters to users' code.
type description struct {
	printer typeText
	pkg     string // the path of the package as it is written in the identifiers
	lines   []string
}

// describe returns the exported API of a package of a module.
func describe(pkg *types.Package, module string, public map[*types.TypeName]string) []string {
	d := &description{printer: typeText{module, public}}
	d.pkg = d.printer.packageName(pkg)
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		switch obj := obj.(type) {
		case *types.Const:
			d.add(name, "const "+d.printer.text(obj.Type())+" = "+obj.Val().ExactString())
		case *types.Var:
			d.add(name, "var "+d.printer.text(obj.Type()))
		case *types.Func:
			d.add(name, d.printer.text(obj.Type()))
		case *types.TypeName:
			d.addType(obj)
		}
	}
	return d.lines
}

func (d *description) add(identifier, declaration string) {
	d.lines = append(d.lines, d.pkg+"."+identifier+" "+declaration)
}

func (d *description) addType(obj *types.TypeName) {
	t := obj.Type()
	if named, ok := types.Unalias(t).(*types.Named); ok && d.printer.public[named.Obj()] == d.pkg+"."+obj.Name() {
		t = named // users see only the alias
	}
	switch t := t.(type) {
	case *types.Alias:
		d.add(obj.Name(), "type"+d.printer.parameters(t.TypeParams())+" = "+d.printer.text(t.Rhs()))
	case *types.Named:
		prefix := "type" + d.printer.parameters(t.TypeParams()) + " "
		switch under := t.Underlying().(type) {
		case *types.Struct:
			d.add(obj.Name(), prefix+"struct")
			d.addFields(obj.Name(), under)
		case *types.Interface:
			if d.closed(under) {
				d.add(obj.Name(), prefix+"interface with unexported methods")
				d.addMethods(obj.Name(), t)
				return
			}
			d.add(obj.Name(), prefix+d.printer.text(under))
			return
		default:
			d.add(obj.Name(), prefix+d.printer.text(under))
		}
		d.addMethods(obj.Name(), t)
	}
}

// closed reports whether users cannot implement an interface, because it has unexported methods. Methods can be added to such an interface.
func (d *description) closed(t *types.Interface) bool {
	for method := range t.Methods() {
		if !method.Exported() {
			return true
		}
	}
	return false
}

// addFields adds the exported fields of a struct, and the exported fields of its unexported embedded structs, which users reach in the same
// way. The tag is a part of a field, because users see it in their custom resources.
func (d *description) addFields(owner string, of *types.Struct) {
	for i := range of.NumFields() {
		field := of.Field(i)
		if !field.Exported() {
			if under, ok := indirect(field.Type()).Underlying().(*types.Struct); ok && field.Embedded() {
				d.addFields(owner, under)
			}
			continue
		}
		kind, tag := "field ", ""
		if field.Embedded() {
			kind = "embedded field "
		}
		if of.Tag(i) != "" {
			tag = " " + strconv.Quote(of.Tag(i))
		}
		d.add(owner+"."+field.Name(), kind+d.printer.text(field.Type())+tag)
	}
}

// addMethods adds the exported methods that this module declares, including promoted methods. It leaves out the methods that other modules
// declare, because they depend on the versions of these modules.
func (d *description) addMethods(owner string, of *types.Named) {
	ofValue := types.NewMethodSet(of)
	all := ofValue
	if !types.IsInterface(of) {
		all = types.NewMethodSet(types.NewPointer(of))
	}
	for selection := range all.Methods() {
		method := selection.Obj()
		if !method.Exported() || !d.printer.ours(method.Pkg()) {
			continue
		}
		declaration := "method " + strings.TrimPrefix(d.printer.text(selection.Type()), "func")
		if ofValue.Lookup(method.Pkg(), method.Name()) == nil {
			declaration = pointerMethod + declaration
		}
		d.add(owner+"."+method.Name(), declaration)
	}
}

func indirect(t types.Type) types.Type {
	if pointer, ok := types.Unalias(t).(*types.Pointer); ok {
		return pointer.Elem()
	}
	return t
}
