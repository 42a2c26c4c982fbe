#compdef jobmeter
# Completion of `jobmeter` for zsh. What a word may become, `jobmeter __complete` says: a line a candidate with its
# description, and :files, :directories or :commands where such names go too.
_jobmeter() {
    local line other
    local -a candidates
    while IFS= read -r line; do
        case $line in
            :*) other=$line ;;
            *$'\t'*) candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
            *) candidates+=("${line//:/\\:}") ;;
        esac
    done < <("$words[1]" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
    (( $#candidates )) && _describe jobmeter candidates
    case $other in
        :files) _files ;;
        :directories) _files -/ ;;
        :commands) _command_names -e ;;
    esac
}
if [[ $funcstack[1] == _jobmeter ]]; then
    _jobmeter "$@"
else
    compdef _jobmeter jobmeter
fi
