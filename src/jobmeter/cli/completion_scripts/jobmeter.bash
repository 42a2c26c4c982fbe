# Completion of `jobmeter` for bash. What a word may become, `jobmeter __complete` says: a line a candidate, and :files,
# :directories or :commands where such names go too.
_jobmeter() {
    local current=${COMP_WORDS[COMP_CWORD]} line
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :files) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current"); compopt -o filenames ;;
            :directories) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$current"); compopt -o filenames ;;
            :commands) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -c -- "$current") ;;
            *) COMPREPLY+=("$(printf %q "${line%%$'\t'*}")") ;;
        esac
    done < <("$1" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
} 2>/dev/null
complete -F _jobmeter jobmeter
